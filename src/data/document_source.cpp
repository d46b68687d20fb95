#include "data/document_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/text_file.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 4> kExtensions = {".txt", ".md", ".rst", ".jsonl"};

// The extension below a compression's.
std::string text_extension(const std::filesystem::path& path) {
    const bool compressed = path.extension() == ".gz" || path.extension() == ".zst";
    return (compressed ? path.stem() : path).extension().string();
}

bool is_text_file(const std::filesystem::path& path) {
    return std::ranges::find(kExtensions, text_extension(path)) != kExtensions.end();
}

void list_folder(const std::filesystem::path& folder, std::vector<std::filesystem::path>& paths,
                 std::vector<std::string>& problems) {
    std::vector<std::filesystem::path> found;
    try {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
            if (!is_text_file(entry.path())) continue;
            std::error_code error;
            if (entry.is_regular_file(error)) found.push_back(entry.path());
            if (error) problems.push_back(fmt::format("{}: {}", entry.path().string(), error.message()));
        }
    } catch (const std::filesystem::filesystem_error& error) {
        problems.push_back(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    }
    std::ranges::sort(found);
    paths.insert(paths.end(), found.begin(), found.end());
}

// Cuts JSON lines out of runs of bytes.
class JsonLines {
  public:
    JsonLines(const std::filesystem::path& path, const std::string& field, const DocumentSink& sink)
        : path_(path), field_(field), sink_(sink) {}

    void add(std::string_view bytes) {
        for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos;
             bytes.remove_prefix(end + 1)) {
            line_ += bytes.substr(0, end);
            finish_line();
        }
        line_ += bytes;
    }

    void finish_line() {
        ++number_;
        if (line_.find_first_not_of(" \t\r") != std::string::npos) read_line();
        line_.clear();
    }

  private:
    void read_line() {
        const nlohmann::json object = parse();
        const auto value = object.find(field_);
        if (value == object.end()) {
            std::vector<std::string> names;
            for (const auto& item : object.items()) names.push_back(item.key());
            throw UserError(fmt::format("{}:{}: no field \"{}\"; there are: {} (choose with --field)",
                                        path_.string(), number_, field_, fmt::join(names, ", ")));
        }
        if (!value->is_string())
            throw UserError(fmt::format("{}:{}: field \"{}\" must be a string, here it is of type {}", path_.string(),
                                        number_, field_, value->type_name()));
        const auto& text = value->get_ref<const std::string&>();
        if (!text.empty()) sink_(text);
    }

    nlohmann::json parse() const {
        nlohmann::json object;
        try {
            object = nlohmann::json::parse(line_);
        } catch (const nlohmann::json::parse_error& error) {
            throw CorruptDataError(fmt::format("[data] {}:{}, byte {} of the line: not JSON: {}",
                                               path_.string(), number_, error.byte, error.what()));
        }
        if (!object.is_object())
            throw CorruptDataError(fmt::format("[data] {}:{}: found {}, expected a JSON object",
                                               path_.string(), number_, object.type_name()));
        return object;
    }

    const std::filesystem::path& path_;
    const std::string& field_;
    const DocumentSink& sink_;
    std::string line_;
    std::int64_t number_ = 0;
};

}  // namespace

std::vector<std::filesystem::path> list_text_files(const std::vector<std::filesystem::path>& inputs) {
    std::vector<std::filesystem::path> paths;
    std::vector<std::string> problems;
    for (const std::filesystem::path& input : inputs) {
        std::error_code error;
        const auto status = std::filesystem::status(input, error);
        if (std::filesystem::is_directory(status)) {
            list_folder(input, paths, problems);
        } else if (status.type() == std::filesystem::file_type::not_found) {
            problems.push_back(fmt::format("{}: no such file or folder", input.string()));
        } else if (!std::filesystem::status_known(status)) {
            problems.push_back(fmt::format("{}: {}", input.string(), error.message()));
        } else if (!is_text_file(input)) {
            problems.push_back(fmt::format("{}: must end in {}, or one of these and .gz or .zst",
                                           input.string(), fmt::join(kExtensions, ", ")));
        } else if (!std::filesystem::is_regular_file(status)) {
            problems.push_back(fmt::format("{}: must be a file or a folder", input.string()));
        } else {
            paths.push_back(input);
        }
    }
    if (problems.empty() && paths.empty()) problems.push_back("no text files in what was given");
    if (!problems.empty()) throw UserError(problems);
    return paths;
}

void read_documents(const FileSystem& files, const std::filesystem::path& path, const std::string& field,
                    const DocumentSink& sink) {
    if (text_extension(path) == ".jsonl") {
        JsonLines lines(path, field, sink);
        read_text_file(files, path, [&](std::string_view bytes) { lines.add(bytes); });
        lines.finish_line();
        return;
    }
    std::string text;
    read_text_file(files, path, [&](std::string_view bytes) { text += bytes; });
    if (!text.empty()) sink(text);
}

}  // namespace atl
