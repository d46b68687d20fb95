// The sites the coordinator knows: who is there, who is suspect, who is gone, and why.
//
// Pure: time is an argument. Used by CoordinatorState alone.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/clock.h"
#include "rounds/coordinator_state.h"

namespace atl {

// A site's latest life.
struct KnownSite {
    SiteInfo info;
    Standing standing = Standing::joining;
    std::string reason;  // of the standing
    std::optional<Hello> hello;
    Report report;
    TimePoint last_report;
    TimePoint last_progress;
    TimePoint suspect_since;
    Standing before_suspect = Standing::joining;
    std::set<Incarnation> past;  // earlier lives

    bool live() const { return !is_gone(standing); }
};

// A standing that changed for the worse.
struct Departure {
    SiteId site;
    std::string reason;
};

class Membership {
  public:
    explicit Membership(const CoordinatorOptions& options) : options_(options) {}

    // Why a report of this identity can't be taken at all; empty: it can.
    std::string refusal(const SiteInfo& site, const std::string& run_id) const;

    // Takes a report. The answer names lives that ended by it (a new incarnation, a goodbye, a refused
    // configuration).
    std::vector<Departure> take(const Report& report, TimePoint now);
    void disconnected(SiteId site, Incarnation incarnation, TimePoint now);
    // Suspects whose time is up and silent sites become gone. `grace`: nobody does.
    std::vector<Departure> expire(TimePoint now, bool grace);
    void set_gone(SiteId site, Standing standing, const std::string& reason);
    void set_active(SiteId site);  // it is in the open plan
    // A member of a stored plan that has not reported to this coordinator yet.
    void expect(SiteId site, Incarnation incarnation, TimePoint now);

    const std::map<SiteId, KnownSite>& sites() const { return sites_; }
    KnownSite* find(SiteId site);
    const KnownSite* find(SiteId site) const;
    bool live(SiteId site) const;

  private:
    bool is_newcomer_early(const KnownSite& known, const SiteInfo& newcomer, TimePoint now) const;
    std::string configuration_difference(const Hello& hello, SiteId site) const;

    CoordinatorOptions options_;
    std::map<SiteId, KnownSite> sites_;
};

}  // namespace atl
