#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/error.h"
#include "data/tokenizer.h"
#include "model/model_json.h"
#include "worker/jobs.h"
#include "worker/site_checkpoint.h"

namespace atl {
namespace {

struct EvaluationFigures {
    std::filesystem::path checkpoint;  // the site of it that was read
    Step step;
    double loss = 0;
    std::int64_t tokens = 0;
    std::int64_t windows = 0;
    std::optional<double> bits_per_byte;  // byte-level models: a token is a byte, or the end of a text and none
};

IslandOptions evaluation_options(const ModelShape& shape, std::int32_t threads) {
    // One window at a time: the loss is a sum in window order whatever the batch.
    return {.model = shape,
            .batch = {.context = shape.context, .sequences_per_step = 1, .micro_batch = 1},
            .purpose = IslandPurpose::evaluation,
            .threads = threads};
}

// Why a loss is not a number, where the parameters say so.
void warn_of_not_finite(const CheckpointReader& reader, const Log& log) {
    const std::string section = reader.section("anchor").empty() ? "parameters" : "anchor";
    for (const TensorInfo& tensor : reader.section(section)) {
        std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape)));
        reader.read(section + "/" + tensor.name, values);
        const auto wrong = std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
        if (wrong > 0)
            log.warning("[eval] {}: {} of {} values of {} are not finite", reader.site_directory().string(), wrong,
                        values.size(), tensor.name);
    }
}

// Among the first tokens that are predicted, which are those after the corpus's first.
std::int64_t ends_of_text(const Corpus& corpus, std::int64_t predicted) {
    const std::int64_t end = std::min(1 + predicted, corpus.token_count());
    return std::ranges::count_if(corpus.document_begins(),
                                 [&](std::int64_t begin) { return begin >= 1 && begin < end; });
}

EvaluationFigures evaluate(const EvalJob& job, const FileSystem& files, const Log& log) {
    const CheckpointReader reader(files, job.checkpoint);
    for (const auto& problem : reader.passed_over())
        log.warning("{}; taking {}", problem, reader.site_directory().string());
    const ModelShape shape = model_from_json(reader.metadata().model, job.checkpoint.string());
    Island island(evaluation_options(shape, job.threads));
    read_initial_parameters(files, reader.site_directory(), island);

    const Corpus corpus(files, job.data, {.vocab = shape.vocab});
    // Joined: as a plain model reads a plain run of tokens, so that other programs can be compared.
    const EvaluationWindows windows(
        corpus, {.context = shape.context, .micro_batch = 1, .documents = WindowDocuments::joined});
    EvaluationFigures figures;
    figures.checkpoint = reader.site_directory();
    figures.step = reader.metadata().step;
    figures.windows =
        job.windows > 0 ? std::min(job.windows, windows.window_count()) : windows.window_count();
    if (figures.windows == 0)
        throw UserError("[eval] --data holds fewer than two tokens: there is nothing to predict");
    const EvaluationResult result = island.evaluate(windows, 0, figures.windows);
    figures.tokens = result.tokens;
    figures.loss = result.loss_sum / static_cast<double>(result.tokens);
    if (shape.vocab >= kByteVocabulary && shape.vocab < 2 * kByteVocabulary)
        figures.bits_per_byte =
            result.loss_sum / std::numbers::ln2 /
            static_cast<double>(result.tokens - ends_of_text(corpus, result.tokens));
    if (!std::isfinite(figures.loss)) warn_of_not_finite(reader, log);
    return figures;
}

}  // namespace

int run_eval_job(const EvalJob& job, FileSystem& files) {
    const EvaluationFigures figures = evaluate(job, files, Log(""));
    if (job.json) {
        nlohmann::ordered_json json{{"loss", figures.loss},
                                    {"perplexity", std::exp(figures.loss)},
                                    {"bits_per_byte", nullptr},
                                    {"tokens", figures.tokens},
                                    {"windows", figures.windows},
                                    {"step", figures.step.value()},
                                    {"checkpoint", figures.checkpoint.string()}};
        if (figures.bits_per_byte) json["bits_per_byte"] = *figures.bits_per_byte;
        fmt::print("{}\n", json.dump(2));
    } else {
        fmt::print("loss {:.6f} nats per token, perplexity {:.4f}{}, {} tokens in {} windows; "
                   "step {}, {}\n",
                   figures.loss,
                   std::exp(figures.loss),
                   figures.bits_per_byte ? fmt::format(", {:.4f} bits per byte", *figures.bits_per_byte) : "",
                   figures.tokens, figures.windows, figures.step, figures.checkpoint.string());
    }
    return 0;
}

}  // namespace atl
