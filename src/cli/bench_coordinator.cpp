#include "cli/bench_coordinator.h"

#include <fmt/format.h>

#include <string>

namespace atl::cli {
namespace {

ServerOptions server_options(const std::string& host, int sites, const RunNumbers& numbers,
                             const std::filesystem::path& directory) {
    ServerOptions options;
    options.protocol.run_id = kBenchRunId;
    for (int site = 0; site < sites; ++site)
        options.protocol.site_names.push_back(fmt::format("site{}", site));
    options.protocol.min_sites = sites;
    options.protocol.numbers = numbers;
    options.protocol.timeouts.reconnect = Milliseconds(0);
    options.run_directory = directory;
    options.address = host + ":0";
    return options;
}

}  // namespace

BenchCoordinator::BenchCoordinator(const std::string& host, int sites, const RunNumbers& numbers)
    : directory_("bench") {
    server_ = std::make_unique<CoordinatorServer>(server_options(host, sites, numbers, directory_.path()),
                                                  clock_, Log("coordinator", LogLevel::warning));
    thread_ = std::jthread([this] { server_->run(); });
}

BenchCoordinator::~BenchCoordinator() {
    server_->request_stop();
    thread_.join();
    server_.reset();
}

}  // namespace atl::cli
