#include "cli/bench_coordinator.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <string>

#include "codec/codec.h"
#include "core/error.h"

namespace atl::cli {
namespace {

std::filesystem::path make_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "atoll-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
        throw StorageError(fmt::format("[bench] can't make a directory in {}",
                                       std::filesystem::temp_directory_path().string()));
    return name;
}

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
    : directory_(make_directory()) {
    server_ = std::make_unique<CoordinatorServer>(server_options(host, sites, plan, directory_), clock_,
                                                  Log("coordinator", LogLevel::warning));
    thread_ = std::jthread([this] { server_->run(); });
}

BenchCoordinator::~BenchCoordinator() {
    server_->request_stop();
    thread_.join();
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

}  // namespace atl::cli
