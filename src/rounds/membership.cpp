#include "rounds/membership.h"

#include <fmt/format.h>

#include "core/check.h"

namespace atl {
namespace {

// A second process under a name that still reports is turned away; after this much silence it takes over.
constexpr Milliseconds kTakeoverSilence{2'000};

bool works(Phase phase) {
    return phase == Phase::loading || phase == Phase::training || phase == Phase::applying;
}

std::int64_t milliseconds(std::chrono::nanoseconds duration) {
    return std::chrono::duration_cast<Milliseconds>(duration).count();
}

}  // namespace

std::string Membership::refusal(const SiteInfo& site, const std::string& run_id) const {
    if (run_id != options_.run_id) {
        return fmt::format("this coordinator serves run {}, not {}", options_.run_id, run_id);
    }
    const std::int64_t index = site.id.value();
    if (index < 0 || index >= std::int64_t(options_.site_names.size()) ||
        options_.site_names[std::size_t(index)] != site.name) {
        return fmt::format("no site \"{}\" with number {} in the coordinator's configuration", site.name,
                           site.id);
    }
    const KnownSite* known = find(site.id);
    if (known == nullptr) return {};
    if (known->past.contains(site.incarnation)) {
        return fmt::format("another process now runs as site \"{}\"", site.name);
    }
    if (known->info.incarnation == site.incarnation && known->standing == Standing::refused)
        return known->reason;
    return {};
}

bool Membership::is_newcomer_early(const KnownSite& known, const SiteInfo& newcomer, TimePoint now) const {
    return known.info.incarnation != newcomer.incarnation && known.live() &&
           known.standing != Standing::suspect && now - known.last_report < kTakeoverSilence;
}

std::string Membership::configuration_difference(const Hello& hello, SiteId site) const {
    for (const auto& [key, wanted] : options_.settings) {
        const auto found = hello.settings.find(key);
        const std::string got = found == hello.settings.end() ? "nothing" : found->second;
        if (got != wanted) {
            return fmt::format("{} differs: the coordinator has {}, site \"{}\" has {}", key, wanted,
                               options_.site_names[std::size_t(site.value())], got);
        }
    }
    for (const auto& [id, other] : sites_) {
        if (id == site || !other.hello || !other.live()) continue;
        if (hello.blocks_per_epoch != other.hello->blocks_per_epoch) {
            return fmt::format(
                "its data has {} blocks in an epoch, site \"{}\" has {}: not the same token files",
                hello.blocks_per_epoch, other.info.name, other.hello->blocks_per_epoch);
        }
        if (hello.fragment_elements != other.hello->fragment_elements) {
            return fmt::format("its fragments are not those of site \"{}\": another model", other.info.name);
        }
    }
    return {};
}

std::vector<Departure> Membership::take(const Report& report, TimePoint now) {
    const SiteId id = report.site.id;
    if (!refusal(report.site, report.run_id).empty()) return {};
    std::vector<Departure> departures;
    KnownSite* known = find(id);
    if (known != nullptr && is_newcomer_early(*known, report.site, now)) return {};
    if (known == nullptr || known->info.incarnation != report.site.incarnation) {
        KnownSite fresh;
        if (known != nullptr) {
            fresh.past = known->past;
            fresh.past.insert(known->info.incarnation);
            if (known->live()) departures.push_back({id, "a new process has taken its place"});
        }
        fresh.last_progress = now;
        sites_[id] = fresh;
        known = &sites_[id];
    } else if (report.sequence <= known->report.sequence) {
        return {};
    }
    const bool moved = report.progress != known->report.progress || report.phase != known->report.phase;
    if (moved) known->last_progress = now;
    known->info = report.site;
    known->last_report = now;
    if (known->standing == Standing::suspect) {
        known->standing = known->before_suspect;
    } else if (known->standing == Standing::lost || (known->standing == Standing::silent && moved)) {
        known->standing = Standing::joining;
    }
    known->report = report;
    known->report.hello.reset();
    if (report.hello && !known->hello) {
        const std::string difference = configuration_difference(*report.hello, id);
        if (!difference.empty()) {
            set_gone(id, Standing::refused, difference);
            departures.push_back({id, difference});
            return departures;
        }
        known->hello = report.hello;
    }
    if (report.phase == Phase::finished && known->live()) set_gone(id, Standing::left, "it has finished");
    return departures;
}

void Membership::disconnected(SiteId site, Incarnation incarnation, TimePoint now) {
    KnownSite* known = find(site);
    if (known == nullptr || known->info.incarnation != incarnation) return;
    if (!known->live() || known->standing == Standing::suspect) return;
    known->before_suspect = known->standing;
    known->standing = Standing::suspect;
    known->suspect_since = now;
    known->reason = "its connection broke";
}

std::vector<Departure> Membership::expire(TimePoint now, bool grace) {
    std::vector<Departure> departures;
    if (grace) return departures;
    const CoordinatorTimeouts& timeouts = options_.timeouts;
    for (auto& [id, known] : sites_) {
        if (!known.live()) continue;
        std::string reason;
        Standing standing = Standing::silent;
        if (known.standing == Standing::suspect) {
            if (now - known.suspect_since < timeouts.disconnect) continue;
            standing = Standing::lost;
            reason = fmt::format("its connection broke and did not come back within {} ms",
                                 timeouts.disconnect.count());
        } else if (now - known.last_report >= timeouts.progress) {
            reason = fmt::format("no report for {} ms", milliseconds(now - known.last_report));
        } else if (works(known.report.phase) && now - known.last_progress >= timeouts.progress) {
            reason = fmt::format("no progress while {} for {} ms", name(known.report.phase),
                                 milliseconds(now - known.last_progress));
        } else {
            continue;
        }
        set_gone(id, standing, reason);
        departures.push_back({id, reason});
    }
    return departures;
}

void Membership::set_gone(SiteId site, Standing standing, const std::string& reason) {
    ATOLL_CHECK(is_gone(standing), "standing {}", name(standing));
    KnownSite* known = find(site);
    ATOLL_CHECK(known != nullptr, "site {} is unknown", site);
    known->standing = standing;
    known->reason = reason;
}

void Membership::set_active(SiteId site) {
    KnownSite* known = find(site);
    ATOLL_CHECK(known != nullptr && known->live(), "site {} is not there", site);
    known->before_suspect = Standing::active;
    if (known->standing == Standing::suspect) return;
    known->standing = Standing::active;
    known->reason.clear();
}

void Membership::expect(SiteId site, Incarnation incarnation, TimePoint now) {
    KnownSite known;
    known.info = {site, options_.site_names.at(std::size_t(site.value())), incarnation, ""};
    known.standing = Standing::suspect;
    known.before_suspect = Standing::active;
    known.reason = "not heard of since the coordinator started";
    known.suspect_since = now;
    known.last_report = now;
    known.last_progress = now;
    sites_[site] = known;
}

KnownSite* Membership::find(SiteId site) {
    const auto found = sites_.find(site);
    return found == sites_.end() ? nullptr : &found->second;
}

const KnownSite* Membership::find(SiteId site) const {
    const auto found = sites_.find(site);
    return found == sites_.end() ? nullptr : &found->second;
}

bool Membership::live(SiteId site) const {
    const KnownSite* known = find(site);
    return known != nullptr && known->live();
}

}  // namespace atl
