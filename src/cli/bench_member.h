// What a site does alike in every benchmark between sites: a transport, the exchange's options, the orders that are no
// part of what is measured, and the comparison at the end.
//
// Threads: one. Errors: CommError when a round is lost; UserError (an address).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/meeting.h"
#include "comm/site/make_transport.h"
#include "exchange/site_exchange.h"

namespace atl::cli {

std::unique_ptr<SiteTransport> open_bench_transport(int site, const std::string& kind, const NetworkOptions& network);
SiteInfo bench_site_info(int site, const SiteTransport& transport);
ExchangeOptions bench_exchange_options(const SiteInfo& self, std::vector<std::int64_t> fragment_elements,
                                       bool zstd);

// Does an order that any site would do alike: true. A round that was lost is an error: a bench counts whole ones.
bool do_routine_order(SiteExchange& exchange, const WorkerOrder& order);

// Every site calls it: whether all have come to the same.
bool all_hold(Meeting& meeting, std::uint64_t hash);

}  // namespace atl::cli
