#include "cli/hugging_face_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "core/new_folder.h"
#include "model/hugging_face.h"
#include "model/model_json.h"

namespace atl::cli {
namespace {

constexpr const char* kConfigName = "config.json";
constexpr const char* kModelName = "model.safetensors";
constexpr const char* kHeadName = "lm_head.weight";
constexpr std::string_view kOptionalPrefix = "transformer.";  // GPT-2's first files lack it

// to[j, i] = from[i, j] for a row-major from[rows, columns].
void transpose(std::span<const float> from, std::int64_t rows, std::int64_t columns, std::span<float> to) {
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            to[static_cast<std::size_t>(j * rows + i)] = from[static_cast<std::size_t>(i * columns + j)];
}

Shape shape_in_file(const HuggingFaceTensor& tensor, const Shape& logical) {
    return tensor.transposed ? Shape{logical[1], logical[0]} : logical;
}

std::string shape_text(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::map<std::string, Shape> logical_shapes(const ModelShape& shape) {
    std::map<std::string, Shape> shapes;
    for (const auto& tensor : model_tensors(shape)) shapes[tensor.name] = tensor.shape;
    return shapes;
}

// The name under which the file holds the tensor, or nothing.
std::optional<std::string> stored_name(const SafetensorsReader& reader, const std::string& name) {
    if (reader.tensors().contains(name)) return name;
    if (!name.starts_with(kOptionalPrefix)) return std::nullopt;
    const std::string bare = name.substr(kOptionalPrefix.size());
    return reader.tensors().contains(bare) ? std::optional(bare) : std::nullopt;
}

void warn_of_not_finite(const std::string& tensor, std::span<const float> values, std::vector<std::string>& warnings) {
    const auto wrong = std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
    if (wrong > 0)
        warnings.push_back(fmt::format("{} of {} values of tensor {} are not finite", wrong, values.size(), tensor));
}

// What a tied head would be read from, where the file holds it apart: other programs take what stands in the file.
std::optional<std::string> untied_head(const SafetensorsReader& reader, const ModelShape& shape) {
    if (!shape.tied || !reader.tensors().contains(kHeadName)) return std::nullopt;
    const auto tensors = hugging_face_tensors(shape);
    const auto embedding = stored_name(reader, tensors.front().name);
    if (!embedding) return std::nullopt;
    const auto values = [&](const std::string& name) {
        std::vector<float> read(static_cast<std::size_t>(element_count(reader.tensors().at(name).shape)));
        reader.read(name, read);
        return read;
    };
    const bool equal_shapes = reader.tensors().at(kHeadName).shape == reader.tensors().at(*embedding).shape;
    if (equal_shapes) {
        const auto head = values(kHeadName), rows = values(*embedding);
        if (std::ranges::equal(std::as_bytes(std::span(head)), std::as_bytes(std::span(rows)))) return std::nullopt;
    }
    return fmt::format("{} says tie_word_embeddings, and {} differs from {}: say \"tie_word_embeddings\": false, or remove "
                       "the tensor",
                       kConfigName, kHeadName, *embedding);
}

// Every difference between what the model needs and what the files hold.
void check_tensors(const SafetensorsReader& reader, const ModelShape& shape,
                   const std::filesystem::path& directory) {
    std::vector<std::string> problems;
    const auto complain = [&](const std::string& problem) {
        problems.push_back(fmt::format("{}: {}", directory.string(), problem));
    };
    const auto shapes = logical_shapes(shape);
    std::set<std::string> used;
    for (const auto& tensor : hugging_face_tensors(shape)) {
        const auto name = stored_name(reader, tensor.name);
        if (!name) {
            complain(fmt::format("no tensor {}", tensor.name));
            continue;
        }
        used.insert(*name);
        const Shape& actual = reader.tensors().at(*name).shape;
        const Shape expected = shape_in_file(tensor, shapes.at(tensor.tensor));
        if (actual != expected)
            complain(fmt::format("tensor {} is {}, {} asks for {}", *name, shape_text(actual), kConfigName,
                                 shape_text(expected)));
    }
    for (const auto& [name, entry] : reader.tensors())
        if (!used.contains(name) && !is_ignorable(shape, name))
            complain(fmt::format("tensor {} has no place in a model of this kind", name));
    if (const auto problem = untied_head(reader, shape)) complain(*problem);
    if (!problems.empty()) throw UserError(problems);
}

// Row-major [out, in], whatever the file's order.
std::vector<float> read_tensor(const SafetensorsReader& reader, const HuggingFaceTensor& tensor,
                               const Shape& logical) {
    std::vector<float> values(static_cast<std::size_t>(element_count(logical)));
    reader.read(*stored_name(reader, tensor.name), values);
    if (!tensor.transposed) return values;
    std::vector<float> turned(values.size());
    transpose(values, logical[1], logical[0], turned);
    return turned;
}

}  // namespace

ConvertedModel import_hugging_face(FileSystem& files, const std::filesystem::path& directory,
                                   const std::filesystem::path& out) {
    const auto config_path = directory / kConfigName;
    if (!files.exists(config_path)) throw UserError(fmt::format("{} doesn't exist", config_path.string()));
    const ModelShape shape = model_from_json(files.read_text(config_path), config_path.string());
    const SafetensorsReader reader(files, directory);
    check_tensors(reader, shape, directory);

    NewFolder folder(files, out);
    CheckpointWriter writer(files, folder.partial(), {.site = "imported"},
                            {.run_id = "imported", .model = model_json(shape)});
    const auto shapes = logical_shapes(shape);
    std::vector<std::string> warnings;
    for (const auto& tensor : hugging_face_tensors(shape)) {
        const Shape& logical = shapes.at(tensor.tensor);
        auto values = read_tensor(reader, tensor, logical);
        warn_of_not_finite(tensor.name, values, warnings);
        writer.add("parameters/" + tensor.tensor, logical, view_of(values));
    }
    writer.commit();
    folder.commit();
    return {.shape = shape,
            .parameters = parameter_count(shape),
            .directory = out,
            .section = "parameters",
            .warnings = warnings};
}

ConvertedModel export_hugging_face(FileSystem& files, const std::filesystem::path& checkpoint,
                                   const std::filesystem::path& out) {
    const CheckpointReader reader(files, checkpoint);
    const ModelShape shape = model_from_json(reader.metadata().model, reader.site_directory().string());
    const std::string section = reader.section("anchor").empty() ? "parameters" : "anchor";
    const auto shapes = logical_shapes(shape);
    std::vector<SafetensorsEntry> entries;
    std::vector<std::string> warnings;
    for (const auto& problem : reader.passed_over())
        warnings.push_back(fmt::format("{}; taking {}", problem, reader.site_directory().string()));
    for (const auto& tensor : hugging_face_tensors(shape)) {
        const Shape& logical = shapes.at(tensor.tensor);
        const auto fill = [&reader, &logical, &warnings, tensor, name = section + "/" + tensor.tensor](std::span<float> values) {
            if (tensor.transposed) {
                std::vector<float> ours(values.size());
                reader.read(name, ours);
                transpose(ours, logical[0], logical[1], values);
            } else {
                reader.read(name, values);
            }
            warn_of_not_finite(tensor.name, values, warnings);
        };
        entries.push_back({tensor.name, shape_in_file(tensor, logical), fill});
    }
    NewFolder folder(files, out);
    write_safetensors(files, folder.partial() / kModelName, entries, {{"format", "pt"}});
    files.write_text_atomically(folder.partial() / kConfigName, model_json(shape) + "\n");
    folder.commit();
    return {.shape = shape,
            .parameters = parameter_count(shape),
            .directory = out,
            .section = section,
            .step = reader.metadata().step.value(),
            .warnings = warnings};
}

}  // namespace atl::cli
