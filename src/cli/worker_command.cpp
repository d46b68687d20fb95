#include "cli/worker_command.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "core/child_process.h"
#include "core/error.h"

namespace atl::cli {

int run_worker(const std::vector<std::string>& arguments) {
    const auto program = program_directory() / "atoll-worker";
    if (!std::filesystem::exists(program))
        throw UserError(
            fmt::format("{} is missing: this build has no libtorch (-DATOLL_TORCH=OFF)", program.string()));
    ChildOptions options{.command = {program.string()}};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    ChildProcess child(options);
    for (;;) {
        const auto status = child.wait_for(Milliseconds(60'000));
        if (!status) continue;
        if (status->signal != 0)
            throw WorldError(fmt::format("atoll-worker ended with {}", to_string(*status)));
        return status->code > kWrongInput ? kRunFailed : status->code;
    }
}

}  // namespace atl::cli
