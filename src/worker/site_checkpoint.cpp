#include "worker/site_checkpoint.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "config/kept_settings.h"
#include "core/error.h"
#include "model/model_json.h"
#include "rounds/messages.h"

namespace atl {
namespace {

constexpr const char* kOpenPlan = "round/plan";

const char* section_of(TensorKind kind) {
    switch (kind) {
        case TensorKind::parameter:
            return "parameters";
        case TensorKind::first_moment:
            return "moment1";
        default:
            return "moment2";
    }
}

void read_into(const CheckpointReader& reader, const std::string& name, const BufferView& values) {
    if (values.dtype == DType::f64)
        reader.read(name, values.as<double>());
    else
        reader.read(name, values.as<float>());
}

std::filesystem::path site_directory(const SiteCheckpointNames& names, Step step) {
    return checkpoint_directory(names.checkpoints, step) / ("site_" + names.site);
}

nlohmann::json to_json(const ReporterProgress& progress) {
    const auto loss = [](const std::optional<double>& value) {
        return value ? nlohmann::json(*value) : nlohmann::json();
    };
    return {{"run_tokens", progress.run_tokens},
            {"site_tokens", progress.site_tokens},
            {"payload_bytes_sent", progress.exchanged.payload_bytes_sent},
            {"wire_bytes_sent", progress.exchanged.wire_bytes_sent},
            {"wire_bytes_received", progress.exchanged.wire_bytes_received},
            {"exchange_seconds", progress.exchanged.seconds},
            {"train_loss", loss(progress.train_loss)},
            {"validation_loss", loss(progress.validation_loss)},
            {"interval_loss_sum", progress.interval_loss_sum},
            {"interval_tokens", progress.interval_tokens},
            {"interval_seconds", progress.interval_seconds},
            {"interval_steps", progress.interval_steps}};
}

ReporterProgress progress_from_json(const nlohmann::json& json) {
    const auto loss = [&](const char* key) {
        return json.at(key).is_null() ? std::nullopt : std::optional<double>(json.at(key));
    };
    // A loss that is not finite is null in JSON.
    const auto& loss_sum = json.at("interval_loss_sum");
    return {.run_tokens = json.at("run_tokens"),
            .site_tokens = json.at("site_tokens"),
            .exchanged = {.payload_bytes_sent = json.at("payload_bytes_sent"),
                          .wire_bytes_sent = json.at("wire_bytes_sent"),
                          .wire_bytes_received = json.at("wire_bytes_received"),
                          .seconds = json.at("exchange_seconds")},
            .train_loss = loss("train_loss"),
            .validation_loss = loss("validation_loss"),
            .interval_loss_sum =
                loss_sum.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss_sum.get<double>(),
            .interval_tokens = json.at("interval_tokens"),
            .interval_seconds = json.at("interval_seconds"),
            .interval_steps = json.at("interval_steps")};
}

}  // namespace

void write_site_checkpoint(FileSystem& files, const SiteCheckpointNames& names, const RunConfig& config,
                           const CheckpointRef& ref, const RoundPlan* open_plan, Island& island,
                           OuterModel& outer, const ReporterProgress& progress) {
    KeptSettings settings = kept_settings(config);
    settings[kDataContents] = names.data_contents;
    const CheckpointMetadata metadata{
        .run_id = names.run_id,
        .step = ref.step,
        .round = ref.round,
        .seed = static_cast<std::uint64_t>(config.run.seed),
        .optimizer_step = island.optimizer_steps(),
        .model = model_json(island.options().model),
        .extra = nlohmann::json{{"state_hash", ref.state_hash.hex()},
                                {"fragments_applied", ref.fragments_applied},
                                {"progress", to_json(progress)},
                                {"settings", settings}}
                     .dump(),
    };
    std::map<std::string, Shape> shapes;
    for (const auto& tensor : island.tensors()) shapes[tensor.name] = tensor.shape;
    CheckpointWriter writer(files, checkpoint_directory(names.checkpoints, ref.step), {.site = names.site},
                            metadata);
    for (const TensorKind kind : island.tensor_kinds())
        island.collect(kind, [&](const TensorSpec& tensor, BufferView whole) {
            writer.add(fmt::format("{}/{}", section_of(kind), tensor.name), tensor.shape, whole);
        });
    if (open_plan != nullptr) writer.add_bytes(kOpenPlan, encode(*open_plan));
    for (OuterFragment& fragment : outer.fragments())
        for (const auto& section : fragment.sections())
            writer.add(section.name, shapes.at(section.name.substr(section.name.find('/') + 1)),
                       view_of(section.values));
    writer.commit();
    prune_checkpoints(files, names.checkpoints, names.site, static_cast<int>(config.checkpoint.keep));
}

std::vector<CheckpointRef> offered_checkpoints(const FileSystem& files, const SiteCheckpointNames& names,
                                               const Log& log) {
    std::vector<CheckpointRef> offered;
    for (const auto& found : find_checkpoints(files, names.checkpoints)) {
        for (const FoundSite& site : found.sites)
            if (site.name == names.site && !site.complete())
                log.warning("{}; the checkpoint of step {} is not used", site.problem, found.step);
        if (!found.complete_for(names.site)) continue;
        const CheckpointReader reader(files, site_directory(names, found.step));
        const auto& metadata = reader.metadata();
        if (metadata.run_id != names.run_id) continue;
        try {
            reader.verify();
        } catch (const CorruptDataError& error) {
            log.warning("{}; the checkpoint of step {} is not used", error.what(), found.step);
            continue;
        }
        const auto extra = nlohmann::json::parse(metadata.extra);
        offered.push_back({metadata.step, metadata.round, hash128_from_hex(extra.at("state_hash")),
                           extra.at("fragments_applied")});
    }
    return offered;
}

ReadCheckpoint read_site_checkpoint(const FileSystem& files, const SiteCheckpointNames& names, Step step,
                                    Island& island, OuterModel& outer) {
    const CheckpointReader reader(files, site_directory(names, step));
    for (const TensorKind kind : island.tensor_kinds())
        island.distribute(kind, [&](const TensorSpec& tensor, BufferView whole) {
            read_into(reader, fmt::format("{}/{}", section_of(kind), tensor.name), whole);
        });
    outer.forget_own();
    for (OuterFragment& fragment : outer.fragments()) {
        if (reader.contains("pending/" + fragment.slices().front().tensor)) fragment.make_pending();
        for (const auto& section : fragment.sections()) reader.read(section.name, section.values);
    }
    island.set_optimizer_steps(reader.metadata().optimizer_step);
    island.share_optimizer_steps();
    ReadCheckpoint read;
    read.progress = progress_from_json(nlohmann::json::parse(reader.metadata().extra).at("progress"));
    if (reader.contains(kOpenPlan)) read.open_plan = decode_round_plan(reader.read_bytes(kOpenPlan));
    return read;
}

std::vector<std::string> moment_tensors(Island& island) {
    std::vector<std::string> names;
    for (const TensorKind kind : island.tensor_kinds())
        for (const auto& tensor : island.tensors())
            if (kind != TensorKind::parameter && island.has(kind, tensor))
                names.push_back(fmt::format("{}/{}", section_of(kind), tensor.name));
    return names;
}

std::optional<KeptMoments> read_newest_moments(const FileSystem& files, const SiteCheckpointNames& names,
                                               const std::vector<std::string>& moment_tensors, const Log& log) {
    try {
        for (const auto& found : find_checkpoints(files, names.checkpoints)) {
            if (!found.complete_for(names.site)) continue;
            const CheckpointReader reader(files, site_directory(names, found.step));
            const auto& metadata = reader.metadata();
            if (metadata.run_id != names.run_id) continue;
            KeptMoments moments{{metadata.round, Step(metadata.optimizer_step), {}}, {{}}};
            std::vector<float>& values = moments.parts.front();
            for (const std::string& name : moment_tensors) {
                const auto count = static_cast<std::size_t>(element_count(reader.tensor(name).shape));
                values.resize(values.size() + count);
                reader.read(name, std::span(values).last(count));
            }
            moments.version.state_hash = xxh3_128(std::as_bytes(std::span(values)));
            return moments;
        }
    } catch (const WorldError& error) {
        log.warning("[worker] no inner moments for a joiner: {}", error.what());
    }
    return {};
}

std::vector<std::string> read_initial_parameters(const FileSystem& files, const std::filesystem::path& path,
                                                 Island& island) {
    const CheckpointReader reader(files, path);
    const std::string section = reader.section("anchor").empty() ? "parameters" : "anchor";
    island.distribute(TensorKind::parameter, [&](const TensorSpec& tensor, BufferView whole) {
        const std::string name = section + "/" + tensor.name;
        if (!reader.contains(name) || element_count(reader.tensor(name).shape) != element_count(tensor.shape))
            throw UserError(
                fmt::format("model.init = \"{}\": it holds no tensor {} of {} elements; is it a checkpoint "
                            "of this model?",
                            path.string(), tensor.name, element_count(tensor.shape)));
        read_into(reader, name, whole);
    });
    return reader.passed_over();
}

}  // namespace atl
