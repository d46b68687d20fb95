// What a run's rounds have cost, also while its coordinator is only starting.
#include "cli/run_costs.h"

#include <gtest/gtest.h>

#include "coordinator/store.h"
#include "core/error.h"
#include "support/temporary_directory.h"

namespace atl::cli {
namespace {

TEST(RunCosts, a_coordinator_that_does_not_answer_yet_is_waited_for_and_then_named_as_such) {
    const test::TemporaryDirectory directory;
    Context context;
    context.files = make_system_file_system();
    const auto database = directory.path() / "coordinator.sqlite";
    {
        const CoordinatorStore held(database, "run");
        try {
            run_costs(context, directory.path(), "run", Milliseconds(1));
            FAIL() << "the database is in use";
        } catch (const WorldError& error) {
            EXPECT_NE(std::string(error.what()).find("does not answer: try again"), std::string::npos)
                << error.what();
        }
    }
    EXPECT_TRUE(run_costs(context, directory.path(), "run").costs.empty());
}

}  // namespace
}  // namespace atl::cli
