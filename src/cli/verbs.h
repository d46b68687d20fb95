// One line per verb; each is in the file of its name (export beside import).
#pragma once

#include "cli/command.h"

namespace atl::cli {

void add_bench(CLI::App& app, Context& context);
void add_bench_exchange(CLI::App& bench, Context& context);  // a subverb
void add_bench_kernels(CLI::App& bench, Context& context);   // another
void add_bench_outer(CLI::App& bench, Context& context);     // another
void add_coordinator(CLI::App& app, Context& context);
void add_eval(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_prepare(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_set(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);  // with subverbs: simulate.h
void add_status(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);
void add_validate(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

}  // namespace atl::cli
