// The coordinator's memory: term, rounds and the history of decisions in one SQLite file.
//
// WAL, synchronous = NORMAL: what save() has written survives the death of the process; after a power loss the last
// decisions may be gone, which is a resume. The file is locked while open, and the lock ends with the process.
//
// Tables: meta(key, value), rounds(round, record: messages.h), changes(key, value) of settings, costs(round, site, cost:
// messages.h), decisions(id, unix_ms, term, text).
// Threads: one. Errors: StorageError (disk, a second coordinator), CorruptDataError (another run's or a damaged file).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "rounds/coordinator_state.h"

namespace atl {

// Another process has the file open.
class StoreInUse : public StorageError {
    using StorageError::StorageError;
};

class CoordinatorStore {
  public:
    // Opens or creates the file. `run_id` must be the one it was created for.
    CoordinatorStore(const std::filesystem::path& file, const std::string& run_id);
    ~CoordinatorStore();
    CoordinatorStore(CoordinatorStore&&) noexcept;
    CoordinatorStore& operator=(CoordinatorStore&&) noexcept;

    CoordinatorRecord load() const;
    void save(const std::vector<CoordinatorDecision>& decisions, Term term, std::int64_t unix_ms);
    // Forgets every round and change, for a run that starts over; the term stays.
    void start_over();

  private:
    struct Database;
    std::unique_ptr<Database> database_;
};

}  // namespace atl
