#include "cli/bench_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/bench_coordinator.h"
#include "core/error.h"
#include "rounds/overloaded.h"

namespace atl::cli {

std::unique_ptr<SiteTransport> open_bench_transport(int site, const std::string& kind,
                                                    const NetworkOptions& network) {
    TransportOptions options;
    options.self = SiteId(site);
    options.incarnation = Incarnation(static_cast<std::uint64_t>(::getpid()));
    options.run_id = kBenchRunId;
    return make_network_transport(kind, options, network);
}

SiteInfo bench_site_info(int site, const SiteTransport& transport) {
    return {SiteId(site), fmt::format("site{}", site), transport.incarnation(), transport.address()};
}

ExchangeOptions bench_exchange_options(const SiteInfo& self, std::vector<std::int64_t> fragment_elements,
                                       bool zstd) {
    ExchangeOptions options;
    options.zstd = zstd;
    options.site.run_id = kBenchRunId;
    options.site.self = self;
    options.site.hello.blocks_per_epoch = kBenchBlocksPerEpoch;
    options.site.hello.fragment_elements = std::move(fragment_elements);
    return options;
}

bool do_routine_order(SiteExchange& exchange, const WorkerOrder& order) {
    return std::visit(Overloaded{
                          [&](const site_action::LoadState& load) {
                              exchange.tell(site_event::StateLoaded{
                                  load.from.round, load.from.step, load.from.state_hash, {}});
                              return true;
                          },
                          [&](const site_action::WriteCheckpoint& write) {
                              exchange.tell(site_event::CheckpointWritten{write.checkpoint.step});
                              return true;
                          },
                          [&](const site_action::Evaluate& part) {
                              exchange.tell(site_event::Evaluated{{.round = part.round}});
                              return true;
                          },
                          [&](const site_action::DropContribution&) -> bool {
                              throw CommError(fmt::format("[bench] a round was lost: {}", order.reason));
                          },
                          [](const auto&) { return false; },
                      },
                      order.action);
}

bool all_hold(Meeting& meeting, std::uint64_t hash) {
    const std::string mine = fmt::format("{}", hash);
    return std::ranges::all_of(meeting.gather_all(mine),
                               [&](const std::string& theirs) { return theirs == mine; });
}

}  // namespace atl::cli
