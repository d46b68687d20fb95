// `atoll ARGUMENTS` as people and scripts call it: in a directory of its own, to its end.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl::test {

struct CommandOutcome {
    int code = -1;  // also when it did not end by itself, which fails the test
    std::string output;
    std::string errors;
};

class AtollCommands {
  public:
    CommandOutcome run(const std::string& arguments) const;  // a shell's words
    // Of a command that ends well and prints one JSON object.
    nlohmann::json json(const std::string& arguments) const;

    std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }
    void write(const std::string& name, const std::string& text) const;
    std::string read(const std::string& name) const { return files_->read_text(path(name)); }

  private:
    TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

}  // namespace atl::test
