#include "coordinator/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "core/error.h"
#include "rounds/messages.h"
#include "rounds/overloaded.h"

namespace atl {

struct CoordinatorStore::Database {
    explicit Database(const std::filesystem::path& file)
        : path(file), connection(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE) {}
    std::filesystem::path path;
    SQLite::Database connection;
};

namespace {

// SQLite's codes for a file that another process has locked and for one that is no database.
constexpr int kBusy = 5;
constexpr int kLocked = 6;
constexpr int kCorrupt = 11;
constexpr int kNoDatabase = 26;
constexpr int kPatience_ms = 1000;  // somebody who only looks into it is soon gone

[[noreturn]] void fail(const std::filesystem::path& file, const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    if (code == kBusy || code == kLocked) {
        throw StoreInUse(
            fmt::format("[coordinator] {} is in use: another coordinator of this run is alive; stop it first",
                        file.string()));
    }
    if (code == kCorrupt || code == kNoDatabase) {
        throw CorruptDataError(fmt::format("[coordinator] {} is damaged: {}", file.string(), error.what()));
    }
    throw StorageError(fmt::format("[coordinator] {}: {}", file.string(), error.what()));
}

template <class Work>
auto guarded(const std::filesystem::path& file, Work work) {
    try {
        return work();
    } catch (const SQLite::Exception& error) {
        fail(file, error);
    }
}

std::string read_meta(SQLite::Database& connection, const char* key) {
    SQLite::Statement query(connection, "SELECT value FROM meta WHERE key = ?");
    query.bind(1, key);
    return query.executeStep() ? query.getColumn(0).getString() : std::string();
}

void write_pair(SQLite::Database& connection, const std::string& table, const std::string& key,
                const std::string& value) {
    SQLite::Statement insert(connection, "INSERT OR REPLACE INTO " + table + " VALUES (?, ?)");
    insert.bind(1, key);
    insert.bind(2, value);
    insert.exec();
}

void write_cost(SQLite::Database& connection, SiteId site, const RoundCost& cost) {
    const std::vector<std::byte> bytes = encode(cost);
    SQLite::Statement insert(connection, "INSERT OR REPLACE INTO costs VALUES (?, ?, ?)");
    insert.bind(1, cost.round.value());
    insert.bind(2, site.value());
    insert.bind(3, bytes.data(), int(bytes.size()));
    insert.exec();
    SQLite::Statement forget(connection, "DELETE FROM costs WHERE site = ? AND round <= ?");
    forget.bind(1, site.value());
    forget.bind(2, cost.round.value() - std::int64_t(kCostsKept));
    forget.exec();
}

void write_round(SQLite::Database& connection, const RoundRecord& record) {
    const std::vector<std::byte> bytes = encode(record);
    SQLite::Statement insert(connection, "INSERT OR REPLACE INTO rounds VALUES (?, ?)");
    insert.bind(1, record.plan.round.value());
    insert.bind(2, bytes.data(), int(bytes.size()));
    insert.exec();
}

}  // namespace

CoordinatorStore::CoordinatorStore(const std::filesystem::path& file, const std::string& run_id) {
    guarded(file, [&] {
        database_ = std::make_unique<Database>(file);
        SQLite::Database& connection = database_->connection;
        connection.setBusyTimeout(kPatience_ms);
        connection.exec("PRAGMA locking_mode = EXCLUSIVE");
        connection.exec("PRAGMA journal_mode = WAL");
        connection.exec("PRAGMA synchronous = NORMAL");
        SQLite::Transaction creation(connection, SQLite::TransactionBehavior::IMMEDIATE);
        connection.exec("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
        connection.exec(
            "CREATE TABLE IF NOT EXISTS rounds (round INTEGER PRIMARY KEY, record BLOB NOT NULL)");
        connection.exec(
            "CREATE TABLE IF NOT EXISTS decisions (id INTEGER PRIMARY KEY, unix_ms INTEGER NOT NULL, "
            "term INTEGER NOT NULL, text TEXT NOT NULL)");
        connection.exec(
            "CREATE TABLE IF NOT EXISTS costs (round INTEGER NOT NULL, site INTEGER NOT NULL, cost BLOB NOT "
            "NULL, "
            "PRIMARY KEY (round, site))");
        connection.exec("CREATE TABLE IF NOT EXISTS changes (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
        const std::string owner = read_meta(connection, "run_id");
        if (owner.empty()) {
            write_pair(connection, "meta", "run_id", run_id);
            write_pair(connection, "meta", "term", "0");
        } else if (owner != run_id) {
            throw CorruptDataError(
                fmt::format("[coordinator] {} belongs to run {}, not to run {}: use another --run-dir",
                            file.string(), owner, run_id));
        }
        creation.commit();
    });
}

CoordinatorStore::~CoordinatorStore() = default;
CoordinatorStore::CoordinatorStore(CoordinatorStore&&) noexcept = default;
CoordinatorStore& CoordinatorStore::operator=(CoordinatorStore&&) noexcept = default;

CoordinatorRecord CoordinatorStore::load() const {
    return guarded(database_->path, [&] {
        CoordinatorRecord record;
        record.term = Term(std::stoll(read_meta(database_->connection, "term")));
        SQLite::Statement query(database_->connection, "SELECT record FROM rounds ORDER BY round");
        while (query.executeStep()) {
            const SQLite::Column column = query.getColumn(0);
            const auto* bytes = static_cast<const std::byte*>(column.getBlob());
            RoundRecord round = decode_round_record({bytes, std::size_t(column.getBytes())});
            record.rounds[round.plan.round] = std::move(round);
        }
        SQLite::Statement changes(database_->connection, "SELECT key, value FROM changes");
        while (changes.executeStep())
            record.changes[changes.getColumn(0).getString()] = changes.getColumn(1).getString();
        SQLite::Statement costs(database_->connection, "SELECT site, cost FROM costs ORDER BY round");
        while (costs.executeStep()) {
            const SQLite::Column column = costs.getColumn(1);
            record.costs[SiteId(costs.getColumn(0).getInt())].push_back(decode_round_cost(
                {static_cast<const std::byte*>(column.getBlob()), std::size_t(column.getBytes())}));
        }
        return record;
    });
}

void CoordinatorStore::save(const std::vector<CoordinatorDecision>& decisions, Term term,
                            std::int64_t unix_ms) {
    if (decisions.empty()) return;
    guarded(database_->path, [&] {
        SQLite::Database& connection = database_->connection;
        SQLite::Transaction transaction(connection, SQLite::TransactionBehavior::IMMEDIATE);
        for (const CoordinatorDecision& decision : decisions) {
            std::visit(Overloaded{
                           [&](const coordinator_action::StoreTerm& stored) {
                               write_pair(connection, "meta", "term", std::to_string(stored.term.value()));
                           },
                           [&](const coordinator_action::StoreRound& stored) {
                               write_round(connection, stored.record);
                           },
                           [&](const coordinator_action::TruncateRounds& truncated) {
                               SQLite::Statement remove(connection, "DELETE FROM rounds WHERE round > ?");
                               remove.bind(1, truncated.last.value());
                               remove.exec();
                               SQLite::Statement forget(connection, "DELETE FROM costs WHERE round >= ?");
                               forget.bind(1, truncated.last.value());
                               forget.exec();
                           },
                           [&](const coordinator_action::StoreChanges& stored) {
                               for (const auto& [key, value] : stored.changes)
                                   write_pair(connection, "changes", key, value);
                           },
                           [&](const coordinator_action::StoreCost& stored) {
                               write_cost(connection, stored.site, stored.cost);
                           },
                           [](const coordinator_action::Note&) {},
                       },
                       decision.action);
            if (decision.reason.empty()) continue;
            SQLite::Statement history(connection,
                                      "INSERT INTO decisions (unix_ms, term, text) VALUES (?, ?, ?)");
            history.bind(1, unix_ms);
            history.bind(2, term.value());
            history.bind(3, decision.reason);
            history.exec();
        }
        transaction.commit();
    });
}

void CoordinatorStore::start_over() {
    guarded(database_->path, [&] {
        database_->connection.exec("DELETE FROM rounds; DELETE FROM changes; DELETE FROM costs");
    });
}

}  // namespace atl
