// `atoll prepare INPUTS… --out DIR`: turns text into token shards.
#include <fmt/format.h>

#include "cli/verbs.h"
#include "data/prepare.h"

namespace atl::cli {
namespace {

struct PrepareVerb {
    PrepareOptions options;
    std::string tokenizer = "bytes";
    bool json = false;
};

void print_split(const char* name, const SplitSummary& split) {
    fmt::print("{:<11} {:>9} documents {:>13} bytes {:>13} tokens in {} shards\n", name, split.documents,
               split.bytes, split.tokens, split.shards);
}

int prepare(const Context& context, const PrepareVerb& verb) {
    const PrepareSummary summary = prepare_corpus(*context.files, verb.options);
    if (summary.validation.documents == 0)
        context.log.warning("no document was held out: --held-out {} of {} document(s)", verb.options.held_out,
                            summary.train.documents);
    if (verb.json) {
        fmt::print("{}", to_json(summary));
        return kSuccess;
    }
    print_split("train", summary.train);
    print_split("validation", summary.validation);
    fmt::print("entropy     {:.4f} nats per byte by bytes alone, {:.4f} by the byte before\n",
               summary.unigram_entropy, summary.bigram_entropy);
    if (summary.validation.documents > 0)
        fmt::print("validation  {:.4f} nats per byte under the training text's bigrams\n",
                   summary.validation_bigram_cross_entropy);
    fmt::print("written to  {}\n", verb.options.out.string());
    return kSuccess;
}

}  // namespace

void add_prepare(CLI::App& app, Context& context) {
    const auto verb = std::make_shared<PrepareVerb>();
    CLI::App& command = *app.add_subcommand("prepare", "Turn text into token shards");
    PrepareOptions& options = verb->options;
    command
        .add_option("inputs", options.inputs, "Files and folders: .txt .md .rst .jsonl, also .gz and .zst")
        ->required()
        ->type_name("INPUT");
    command.add_option("--out", options.out, "Folder to create; must be new or empty")
        ->required()
        ->check(writable_folder());
    command.add_option("--field", options.field, "Field of JSON lines that holds the text")
        ->capture_default_str();
    command.add_option("--tokenizer", verb->tokenizer, "How text becomes tokens")
        ->check(CLI::IsMember({"bytes"}))
        ->capture_default_str();
    command.add_option("--held-out", options.held_out, "Share of the documents kept for validation")
        ->check(number_between(0, 1))
        ->capture_default_str();
    command.add_option("--seed", options.seed, "Of the choice of held-out documents")
        ->check(at_least(0))
        ->capture_default_str();
    command.add_option("--shard-tokens", options.shard_tokens, "Most tokens in one shard")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
        ->capture_default_str();
    command.add_flag("--json", verb->json, "Print the summary as one JSON object");
    command.callback(
        [&context, verb] { context.command = [&context, verb] { return prepare(context, *verb); }; });
}

}  // namespace atl::cli
