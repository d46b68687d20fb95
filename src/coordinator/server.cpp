#include "coordinator/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>
#include <zmq.hpp>

#include "coordinator/control_wire.h"
#include "coordinator/live_settings.h"
#include "coordinator/round_tuner.h"
#include "coordinator/run_options.h"
#include "coordinator/status_page.h"
#include "coordinator/store.h"
#include "core/error.h"
#include "core/file_system.h"
#include "rounds/messages.h"

namespace atl {
namespace {

constexpr Milliseconds kTurn{10};  // longest pause of the loop; ticks the protocol
constexpr int kMessagesPerTurn = 256;
constexpr int kQueuedViews = 64;  // per site; a site that does not read loses views, not the coordinator
constexpr const char* kMonitor = "inproc://coordinator-monitor";

}  // namespace

class CoordinatorServer::Loop {
  public:
    Loop(ServerOptions options, const Clock& clock, const Log& log)
        : options_(std::move(options)),
          clock_(clock),
          log_(log),
          files_(make_system_file_system()),
          store_(prepare_store()),
          socket_(context_, zmq::socket_type::router),
          monitor_(context_, zmq::socket_type::pair),
          state_(restored()) {
        socket_.set(zmq::sockopt::maxmsgsize, std::int64_t(kLongestControlMessage));
        socket_.set(zmq::sockopt::sndhwm, kQueuedViews);
        socket_.set(zmq::sockopt::router_mandatory, true);  // send() says so when a connection is gone
        socket_.set(zmq::sockopt::linger, 500);
        monitor_.set(zmq::sockopt::linger, 0);
        if (zmq_socket_monitor(socket_.handle(), kMonitor, ZMQ_EVENT_DISCONNECTED) != 0) throw zmq::error_t();
        monitor_.connect(kMonitor);
        bind();
        if (!options_.http_address.empty()) page_ = std::make_unique<StatusPage>(options_.http_address);
        handle(coordinator_event::Started{});
        log_.info("[coordinator] run {} listens on {}", options_.protocol.run_id, address_);
    }

    int run() {
        while (true) {
            zmq::pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                       {monitor_.handle(), 0, ZMQ_POLLIN, 0}};
            try {
                zmq::poll(items, 2, kTurn);
            } catch (const zmq::error_t& error) {
                if (error.num() != EINTR) throw;
            }
            // First the monitor: a number of a closed connection may already belong to a new one.
            take_disconnects();
            take_messages();
            if (stop_.exchange(false)) handle(coordinator_event::StopRequested{"a stop was requested"});
            handle(coordinator_event::Tick{});
            const auto& ending = state_.view().ending;
            if (!ending) continue;
            if (!ended_) ended_ = clock_.now();
            // Whoever has not hung up may not have read yet that the run is over, or evaluates its result, of which the
            // sum is made here, or writes its last checkpoint.
            const bool all_know = state_.done() && connections_.empty();
            const TimePoint now = clock_.now();
            const bool waited = now - *ended_ > options_.farewell && !state_.anyone_works(now);
            if (all_know || waited) return ending->exit_code;
        }
    }

    const std::string& address() const { return address_; }
    void request_stop() { stop_ = true; }

  private:
    struct Connection {
        SiteInfo site;
        std::string run_id;
        std::string identity;
        int descriptor = -1;
        bool is_reached = true;  // by the last view that was sent to all
    };

    CoordinatorStore prepare_store() {
        files_->create_directories(options_.run_directory);
        CoordinatorStore store(options_.run_directory / "coordinator.sqlite", options_.protocol.run_id);
        if (options_.start_over) store.start_over();
        return store;
    }

    // Nobody typed these now: a report has to say where they come from.
    RunConfig with_earlier_changes(const std::vector<std::string>& assignments) const {
        try {
            return change_settings(*options_.config, assignments).config;
        } catch (const UserError& error) {
            std::vector<std::string> problems = error.problems();
            problems.push_back(
                "these settings were changed by `atoll set` in an earlier part of the run and do not fit the "
                "config file as it is now: change that back, or begin another run with another --run-dir");
            throw UserError(problems);
        }
    }

    // With what was changed before an earlier end of the coordinator.
    CoordinatorState restored() {
        CoordinatorRecord stored = store_.load();
        std::vector<std::string> assignments;
        for (const auto& [key, value] : stored.changes) assignments.push_back(key + "=" + value);
        if (options_.config && !assignments.empty()) {
            log_.info("[coordinator] settings changed while the run went on: {}",
                      fmt::join(assignments, ", "));
            adopt(with_earlier_changes(assignments));
        }
        return CoordinatorState(options_.protocol, std::move(stored));
    }

    // `now_in_use`: the H that "auto" begins with.
    void adopt(RunConfig changed, std::int64_t now_in_use = 0) {
        RunNumbers numbers = run_numbers(changed);
        if (numbers.automatic_inner_steps && now_in_use > 0) numbers.inner_steps = now_in_use;
        numbers.stop_at = options_.protocol.numbers.stop_at;
        numbers.chunk_elements = options_.protocol.numbers.chunk_elements;
        options_.protocol.numbers = numbers;
        options_.config = std::move(changed);
    }

    // The answer to a `set` message.
    std::string change(std::string_view lines) {
        std::vector<std::string> assignments;
        std::istringstream text{std::string(lines)};
        for (std::string line; std::getline(text, line);) assignments.push_back(line);
        try {
            if (!options_.config) throw UserError("set: the settings of this run can't be changed");
            const ChangedRun changed = change_settings(*options_.config, assignments);
            if (!changed.changes.empty()) {
                adopt(changed.config, state_.numbers().inner_steps);
                coordinator_event::NumbersChanged event{options_.protocol.numbers, {}, changed.describe()};
                for (const auto& [key, values] : changed.changes) event.changes[key] = values.after;
                handle(event);
            }
            nlohmann::json changes = nlohmann::json::object();
            for (const auto& [key, values] : changed.changes)
                changes[key] = {{"before", values.before}, {"after", values.after}};
            const View& view = state_.view();
            const Round from = view.plan ? view.round.next() : view.round;
            return nlohmann::json{{"accepted", true}, {"changes", changes}, {"from_round", from.value()}}
                .dump();
        } catch (const UserError& error) {
            return nlohmann::json{{"accepted", false}, {"problems", error.problems()}}.dump(
                -1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    }

    void bind() {
        const std::filesystem::path address_file = options_.run_directory / "coordinator.address";
        const std::string& wanted = options_.address;
        const bool any_port = wanted.ends_with(":0");
        if (any_port && files_->exists(address_file)) try_bind(files_->read_text(address_file));
        if (address_.empty()) {
            const std::string host = wanted.substr(0, wanted.rfind(':'));
            const int error = try_bind(any_port ? host + ":*" : wanted);
            if (error != 0) {
                throw UserError(fmt::format(
                    "[coordinator] can't listen on {}: {}; choose another coordinator.address, or "
                    "stop who listens there",
                    wanted, zmq_strerror(error)));
            }
        }
        files_->write_text_atomically(address_file, address_);
    }

    // The error of the system, 0 for none.
    int try_bind(const std::string& address) {
        try {
            socket_.bind("tcp://" + address);
        } catch (const zmq::error_t& error) {
            return error.num();
        }
        address_ = socket_.get(zmq::sockopt::last_endpoint).substr(std::strlen("tcp://"));
        return 0;
    }

    void take_disconnects() {
        zmq::message_t event;
        while (monitor_.recv(event, zmq::recv_flags::dontwait)) {
            std::uint16_t kind = 0;
            std::uint32_t descriptor = 0;
            if (event.size() >= sizeof kind + sizeof descriptor) {
                std::memcpy(&kind, event.data(), sizeof kind);
                std::memcpy(&descriptor, static_cast<const char*>(event.data()) + sizeof kind,
                            sizeof descriptor);
            }
            zmq::message_t endpoint;
            if (event.more()) (void)monitor_.recv(endpoint);
            if (kind == ZMQ_EVENT_DISCONNECTED) disconnected(int(descriptor));
        }
    }

    void disconnected(int descriptor) {
        for (auto entry = connections_.begin(); entry != connections_.end(); ++entry) {
            if (entry->second.descriptor != descriptor) continue;
            const SiteInfo site = entry->second.site;
            connections_.erase(entry);
            handle(coordinator_event::Disconnected{site.id, site.incarnation});
            return;
        }
    }

    void take_messages() {
        for (int i = 0; i < kMessagesPerTurn; ++i) {
            zmq::message_t identity;
            if (!socket_.recv(identity, zmq::recv_flags::dontwait)) return;
            zmq::message_t body;
            bool has_body = false;
            while ((has_body ? body.more() : identity.more())) {
                zmq::message_t part;
                (void)socket_.recv(part);
                has_body = true;
                body = std::move(part);
            }
            if (has_body) take(identity.to_string(), body);
        }
    }

    void take(const std::string& identity, zmq::message_t& body) {
        const std::span<const std::byte> bytes(static_cast<const std::byte*>(body.data()), body.size());
        if (body.to_string_view() == kStatusRequest) {
            (void)send(identity, status_json(state_.view(), state_.record().costs));
            return;
        }
        if (body.to_string_view().starts_with(kSetRequest)) {
            (void)send(identity, change(body.to_string_view().substr(kSetRequest.size())));
            return;
        }
        try {
            Report report = decode_report(bytes);
            const Connection connection{report.site, report.run_id, identity,
                                        zmq_msg_get(body.handle(), ZMQ_SRCFD)};
            const bool accepted = state_.view_for(report.site, report.run_id).refusal.empty();
            if (accepted) connections_[{report.site.id, report.site.incarnation}] = connection;
            const bool has_cost = report.last_cost.has_value();
            const std::int64_t version = state_.version();
            handle(coordinator_event::ReportReceived{std::move(report)});
            if (has_cost) follow_costs();
            const auto known = connections_.find({connection.site.id, connection.site.incarnation});
            const bool is_told = accepted && known != connections_.end() && state_.version() != version;
            // The last words of a connection may be read after the news that it broke: nobody else would end it.
            if (!(is_told ? known->second.is_reached : tell(connection)) && accepted) {
                connections_.erase({connection.site.id, connection.site.incarnation});
                handle(coordinator_event::Disconnected{connection.site.id, connection.site.incarnation});
            }
        } catch (const CorruptDataError& error) {
            log_.warning("[coordinator] a message was dropped: {}", error.what());
        }
    }

    void handle(const CoordinatorEvent& event) {
        const std::int64_t version = state_.version();
        const std::vector<CoordinatorDecision> decisions = state_.handle(event, clock_.now());
        store_.save(decisions, state_.record().term, clock_.unix_ms());
        for (const CoordinatorDecision& decision : decisions)
            if (!decision.reason.empty()) log_.info("[coordinator] {}", decision.reason);
        if (state_.version() == version) return;
        for (auto& [process, connection] : connections_) connection.is_reached = tell(connection);
        if (page_) page_->show(status_json(state_.view(), state_.record().costs));
    }

    // `outer.inner_steps = "auto"`: from the next round.
    void follow_costs() {
        const View& view = state_.view();
        if (!state_.numbers().automatic_inner_steps || !view.plan || view.ending) return;
        RunNumbers numbers = state_.numbers();
        const auto fragments = static_cast<std::int64_t>(view.plan->fragments.size());
        const auto tuned = tune_inner_steps(numbers, fragments, state_.record().costs);
        if (!tuned) return;
        numbers.inner_steps = tuned->inner_steps;
        handle(coordinator_event::NumbersChanged{numbers, {}, tuned->reason});
    }

    // False: the connection is gone.
    bool tell(const Connection& to) {
        const View view = state_.view_for(to.site, to.run_id);
        const bool is_everybodys = view.refusal.empty() && view.hello_known;
        if (is_everybodys && encoded_version_ == view.version) return send(to.identity, encoded_view_);
        const std::vector<std::byte> bytes = encode(view);
        std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (!is_everybodys) return send(to.identity, text);
        encoded_view_ = std::move(text);
        encoded_version_ = view.version;
        return send(to.identity, encoded_view_);
    }

    // False: the connection is gone. To one whose queue is full nothing is sent: its next report is answered.
    bool send(const std::string& identity, std::string_view bytes) {
        try {
            if (socket_.send(zmq::buffer(identity), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
                (void)socket_.send(zmq::buffer(bytes), zmq::send_flags::dontwait);
            return true;
        } catch (const zmq::error_t& error) {
            if (error.num() != EHOSTUNREACH) throw;
            return false;
        }
    }

    ServerOptions options_;
    const Clock& clock_;
    Log log_;
    std::unique_ptr<FileSystem> files_;
    CoordinatorStore store_;
    zmq::context_t context_{1};
    zmq::socket_t socket_;
    zmq::socket_t monitor_;
    CoordinatorState state_;
    std::unique_ptr<StatusPage> page_;
    std::string address_;
    // By process: a second one under a site's name waits, and must not hide that the first has died.
    std::map<std::pair<SiteId, Incarnation>, Connection> connections_;
    // The view as all get it whom nothing is to be told alone: most of the work of an answer.
    std::string encoded_view_;
    std::int64_t encoded_version_ = -1;
    std::optional<TimePoint> ended_;
    std::atomic<bool> stop_ = false;
};

CoordinatorServer::CoordinatorServer(ServerOptions options, const Clock& clock, const Log& log)
    : loop_(std::make_unique<Loop>(std::move(options), clock, log)) {}
CoordinatorServer::~CoordinatorServer() = default;

int CoordinatorServer::run() {
    return loop_->run();
}

std::string CoordinatorServer::address() const {
    return loop_->address();
}

void CoordinatorServer::request_stop() {
    loop_->request_stop();
}

}  // namespace atl
