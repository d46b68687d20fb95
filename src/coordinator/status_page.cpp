#include "coordinator/status_page.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "core/error.h"

namespace atl {

struct StatusPage::Server {
    httplib::Server http;
    std::mutex mutex;
    std::string json = "{}";  // guarded by mutex
    std::atomic<bool> ended = false;
    std::jthread thread;
};

StatusPage::StatusPage(const std::string& address) : server_(std::make_unique<Server>()) {
    const std::size_t colon = address.rfind(':');
    int port = 0;
    try {
        port = std::stoi(address.substr(colon == std::string::npos ? address.size() : colon + 1));
    } catch (const std::exception&) {
        throw UserError(fmt::format("[coordinator] {}: an address of the status page is HOST:PORT", address));
    }
    server_->http.Get("/status",
                      [server = server_.get()](const httplib::Request&, httplib::Response& response) {
                          const std::lock_guard lock(server->mutex);
                          response.set_content(server->json, "application/json");
                      });
    if (!server_->http.bind_to_port(address.substr(0, colon), port)) {
        throw UserError(
            fmt::format("[coordinator] the status page can't listen on {}: is the port taken?", address));
    }
    server_->thread = std::jthread([server = server_.get()] {
        server->http.listen_after_bind();
        server->ended = true;
    });
}

StatusPage::~StatusPage() {
    // stop() does nothing before the thread has begun to listen.
    while (!server_->http.is_running() && !server_->ended) std::this_thread::yield();
    server_->http.stop();
}

void StatusPage::show(const std::string& json) {
    const std::lock_guard lock(server_->mutex);
    server_->json = json;
}

}  // namespace atl
