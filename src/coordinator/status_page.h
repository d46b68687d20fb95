// The status by HTTP: GET /status answers the newest JSON that was shown.
//
// Own thread, ended by the destructor. show() from any thread. Throws CommError if the address can't be bound.
#pragma once

#include <memory>
#include <string>

namespace atl {

class StatusPage {
  public:
    explicit StatusPage(const std::string& address);  // host:port
    ~StatusPage();
    void show(const std::string& json);

  private:
    struct Server;
    std::unique_ptr<Server> server_;
};

}  // namespace atl
