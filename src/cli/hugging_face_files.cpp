#include "cli/hugging_face_files.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "core/error.h"
#include "model/hugging_face.h"
#include "model/model_json.h"

namespace atl::cli {
namespace {

constexpr const char* kConfigName = "config.json";
constexpr const char* kModelName = "model.safetensors";
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

    CheckpointWriter writer(files, out, {.site = "imported"},
                            {.run_id = "imported", .model = model_json(shape)});
    const auto shapes = logical_shapes(shape);
    for (const auto& tensor : hugging_face_tensors(shape)) {
        const Shape& logical = shapes.at(tensor.tensor);
        auto values = read_tensor(reader, tensor, logical);
        writer.add("parameters/" + tensor.tensor, logical, view_of(values));
    }
    writer.commit();
    return {shape, parameter_count(shape), out, "parameters"};
}

ConvertedModel export_hugging_face(FileSystem& files, const std::filesystem::path& checkpoint,
                                   const std::filesystem::path& out) {
    const CheckpointReader reader(files, checkpoint);
    const ModelShape shape = model_from_json(reader.metadata().model, reader.site_directory().string());
    const std::string section = reader.section("anchor").empty() ? "parameters" : "anchor";
    const auto shapes = logical_shapes(shape);
    std::vector<SafetensorsEntry> entries;
    for (const auto& tensor : hugging_face_tensors(shape)) {
        const Shape& logical = shapes.at(tensor.tensor);
        const auto fill = [&reader, &logical, name = section + "/" + tensor.tensor,
                           transposed = tensor.transposed](std::span<float> values) {
            if (!transposed) return reader.read(name, values);
            std::vector<float> ours(values.size());
            reader.read(name, ours);
            transpose(ours, logical[0], logical[1], values);
        };
        entries.push_back({tensor.name, shape_in_file(tensor, logical), fill});
    }
    files.create_directories(out);
    write_safetensors(files, out / kModelName, entries, {{"format", "pt"}});
    files.write_text_atomically(out / kConfigName, model_json(shape) + "\n");
    return {shape, parameter_count(shape), out, section};
}

}  // namespace atl::cli
