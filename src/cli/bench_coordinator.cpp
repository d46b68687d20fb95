#include "cli/bench_coordinator.h"

#include <fmt/format.h>

#include <string>

#include "codec/codec.h"
#include "core/error.h"

namespace atl::cli {
namespace {

ServerOptions server_options(const std::string& host, int sites, const BenchPlan& plan,
                             const std::filesystem::path& directory) {
    ServerOptions options;
    options.protocol.run_id = kBenchRunId;
    for (int site = 0; site < sites; ++site)
        options.protocol.site_names.push_back(fmt::format("site{}", site));
    options.protocol.min_sites = sites;
    options.protocol.numbers.method.codec = plan.codec;
    options.protocol.numbers.gather = is_gathered(codec_from_name(plan.codec));
    options.protocol.numbers.inner_steps = 1;
    options.protocol.numbers.total_steps = plan.warm_up_rounds + plan.rounds;
    options.protocol.timeouts.reconnect = Milliseconds(0);
    options.run_directory = directory;
    options.address = host + ":0";
    return options;
}

}  // namespace

BenchCoordinator::BenchCoordinator(const std::string& host, int sites, const BenchPlan& plan)
    : directory_("bench") {
    server_ = std::make_unique<CoordinatorServer>(server_options(host, sites, plan, directory_.path()),
                                                  clock_, Log("coordinator", LogLevel::warning));
    thread_ = std::jthread([this] { server_->run(); });
}

BenchCoordinator::~BenchCoordinator() {
    server_->request_stop();
    thread_.join();
    server_.reset();
}

}  // namespace atl::cli
