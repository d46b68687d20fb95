// From settings to a RunConfig: names, types and ranges, key by key. What keys mean together is rules.h.
#pragma once

#include <map>
#include <set>
#include <string>

#include "config/setting.h"

namespace atl {

// Where each given key was last set: "train.steps" → "run.toml:12"; keys of sites as "site.NAME.threads".
class Origins {
  public:
    explicit Origins(std::string file) : file_(std::move(file)) {}
    void set(const std::string& name, std::string where) { places_[name] = std::move(where); }
    void set_wrong(const std::string& name) { wrong_.insert(name); }
    // Its value has been reported already: no need to say more about it.
    bool wrong(const std::string& name) const { return wrong_.contains(name); }
    bool given(const std::string& name) const { return places_.contains(name); }
    // The file itself for a key that has its default.
    const std::string& where(const std::string& name) const {
        const auto place = places_.find(name);
        return place == places_.end() ? file_ : place->second;
    }

  private:
    std::string file_;
    std::map<std::string, std::string> places_;
    std::set<std::string> wrong_;
};

struct RunConfig;

// Sets what can be set, and reports the rest. Notices name old spellings. Sites inherit [island].
void assign_settings(const Settings& settings, RunConfig& config, Origins& origins, Problems& problems,
                     std::vector<std::string>& notices);

}  // namespace atl
