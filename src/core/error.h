// The three kinds of failure. Messages say what, where, why and how to mend, and begin with the area in
// brackets: "[exchange] round 41: no packet from site 2 after 30,000 ms; 2 of 3 sites answered; …".
//
// Expected outcomes (a site left, a round was skipped) are return values, not errors.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace atl {

// The user's input is wrong. Carries every problem found, one line each ("file:line: …"). Exit code 2, no
// stack.
class UserError : public std::runtime_error {
  public:
    explicit UserError(std::string problem);
    explicit UserError(std::vector<std::string> problems);
    const std::vector<std::string>& problems() const { return problems_; }

  private:
    std::vector<std::string> problems_;
};

// The world failed: a peer, a disk, foreign data. Exit code 1.
class WorldError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A peer is gone, silent or unreachable. The message names the peer, what was tried and the deadline.
class CommError : public WorldError {
    using WorldError::WorldError;
};

// A file system operation failed: the message names the path and the system's reason.
class StorageError : public WorldError {
    using WorldError::WorldError;
};

// Bytes from a disk or a peer are not what their checksum or format says.
class CorruptDataError : public WorldError {
    using WorldError::WorldError;
};

}  // namespace atl
