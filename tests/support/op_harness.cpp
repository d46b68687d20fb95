#include "support/op_harness.h"

namespace atl::test {
namespace {

DType dtype_of(at::ScalarType type) {
    switch (type) {
        case at::kFloat:
            return DType::f32;
        case at::kDouble:
            return DType::f64;
        default:
            ATOLL_CHECK(type == at::kInt);
            return DType::i32;
    }
}

void copy_into(BufferView view, const at::Tensor& tensor) {
    const at::Tensor dense = tensor.contiguous();
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(dense.nbytes()), view.bytes());
    std::memcpy(view.data, dense.data_ptr(), dense.nbytes());
}

at::Tensor copy_of(BufferView view, const Shape& shape, at::ScalarType type) {
    return at::from_blob(view.data, shape, at::TensorOptions().dtype(type)).clone();
}

}  // namespace

std::vector<at::Tensor> run_op(const OpCase& op_case) {
    ProgramBuilder builder;
    Op op{.kind = op_case.kind, .attributes = op_case.attributes};
    for (const at::Tensor& tensor : op_case.reads) {
        op.reads.push_back(builder.add(Value{.name = "read_" + std::to_string(op.reads.size()),
                                             .shape = tensor.sizes().vec(),
                                             .dtype = dtype_of(tensor.scalar_type()),
                                             .role = Role::input}));
    }
    for (const OpWrite& write : op_case.writes) {
        Value value{.name = "write_" + std::to_string(op.writes.size()),
                    .shape = write.shape,
                    .dtype = write.is_sum ? DType::f64 : dtype_of(op_case.dtype),
                    .role = Role::output};
        if (write.in_place_of) {
            value.role = Role::input;
            value.view_of = ValueView{op.reads.at(*write.in_place_of), 0};
        }
        op.writes.push_back(builder.add(value));
    }
    op.scratch_bytes = op_scratch_bytes(builder.program(), op, 1);
    builder.add(op);
    Program program = builder.take();
    const Placement placement = place(program);
    const ProgramMemory memory(program, placement);
    for (std::size_t i = 0; i < op_case.reads.size(); ++i)
        copy_into(memory.view(op.reads[i]), op_case.reads[i]);
    for (std::size_t i = 0; i < op_case.writes.size(); ++i) {
        if (op_case.writes[i].initial) copy_into(memory.view(op.writes[i]), *op_case.writes[i].initial);
    }
    Executor executor(program, memory, {});
    executor.run();
    ATOLL_CHECK_EQ(executor.allocations().count, 0, "{} allocated", name(op_case.kind));
    std::vector<at::Tensor> written;
    for (std::size_t i = 0; i < op_case.writes.size(); ++i) {
        const OpWrite& write = op_case.writes[i];
        written.push_back(
            copy_of(memory.view(op.writes[i]), write.shape, write.is_sum ? at::kDouble : op_case.dtype));
    }
    return written;
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor wide = b.detach().to(at::kDouble);
    const double largest = wide.abs().max().item<double>();
    const double difference = (a.detach().to(at::kDouble) - wide).abs().max().item<double>();
    return largest > 0 ? difference / largest : difference;
}

}  // namespace atl::test
