#include "comm/island/gloo_all_reduce.h"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/math.h>

#include "comm/island/gloo_mesh.h"
#include "core/error.h"

namespace atl {

class GlooAllReduce::Context final : public gloo::Context {
  public:
    explicit Context(const GlooMesh& mesh) : gloo::Context(mesh.rank(), mesh.size()) {
        device_ = mesh.device();
        transportContext_ = mesh.context();
    }
};

GlooAllReduce::GlooAllReduce(const GlooOptions& options, Rendezvous& rendezvous)
    : mesh_(std::make_unique<GlooMesh>(options, rendezvous)), context_(std::make_shared<Context>(*mesh_)) {}
GlooAllReduce::~GlooAllReduce() = default;

void GlooAllReduce::run(std::span<const float> values, std::span<float> sum, Milliseconds timeout) {
    gloo::AllreduceOptions options(context_);
    options.setInput(const_cast<float*>(values.data()), values.size());  // Gloo only reads it
    options.setOutput(sum.data(), sum.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTimeout(timeout);
    try {
        gloo::allreduce(options);
    } catch (const gloo::Exception& error) {
        throw CommError(fmt::format("[gloo] the all-reduce failed: {}", error.what()));
    }
}

}  // namespace atl
