// Products with weights, forward and backward.
#include "model/emit_ops.h"

namespace atl {

ValueId OpEmitter::linear(const std::string& name, const LinearParts<Parameter>& linear, ValueId input) {
    const auto output = activation(name, {tokens_, shape_of_value(linear.weight.weight).front()});
    std::vector<ValueId> reads{input, linear.weight.weight};
    if (linear.bias) reads.push_back(linear.bias->weight);
    emit(StepPart::forward, {.kind = OpKind::linear, .reads = reads, .writes = {output}});
    return output;
}

void OpEmitter::weight_gradient(const LinearParts<Parameter>& linear, ValueId input, ValueId doutput) {
    const auto accumulate = accumulate_into(linear.weight.gradient);
    std::vector<ValueId> writes{linear.weight.gradient};
    if (linear.bias) {
        accumulate_into(linear.bias->gradient);
        writes.push_back(linear.bias->gradient);
    }
    emit(StepPart::backward_weight, {.kind = OpKind::linear_backward_weight,
                                  .attributes = accumulate,
                                  .reads = {doutput, input},
                                  .writes = writes});
}

ValueId OpEmitter::input_gradient(const std::string& name, const LinearParts<Parameter>& linear,
                                  ValueId input, ValueId doutput) {
    const auto dinput = activation(name + ".dinput", shape_of_value(input));
    emit(StepPart::backward_input, {.kind = OpKind::linear_backward_input,
                                 .reads = {doutput, linear.weight.weight},
                                 .writes = {dinput}});
    return dinput;
}

ValueId OpEmitter::linear_backward(const std::string& name, const LinearParts<Parameter>& linear,
                                   ValueId input, ValueId doutput) {
    // First, so that the input gradient can lie where the input was.
    weight_gradient(linear, input, doutput);
    return input_gradient(name, linear, input, doutput);
}

ValueId OpEmitter::gathered_linear_backward(const std::string& name, const LinearParts<Parameter>& linear,
                                            ValueId input, ValueId doutput) {
    if (!is_cut()) return linear_backward(name, linear, input, doutput);
    // The weight's gradient is computed while the input's is on its way.
    const auto partial = input_gradient(name, linear, input, doutput);
    const auto dinput = scatter(StepPart::backward_input, name + ".dinput.own", partial);
    weight_gradient(linear, input, doutput);
    return dinput;
}

}  // namespace atl
