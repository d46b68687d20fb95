#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "layout/box_copy.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"

namespace atl {
namespace {

// A site's directory for any path a user may name; `problems` has those that were passed over.
std::filesystem::path find_site(const FileSystem& files, const std::filesystem::path& path,
                                std::vector<std::string>& problems) {
    if (!files.exists(path)) throw UserError(fmt::format("[checkpoint] {} doesn't exist", path.string()));
    if (files.exists(part_directory(path, Rank(0)) / kManifestName)) return path;
    if (files.exists(path / "checkpoints")) return find_site(files, path / "checkpoints", problems);
    std::vector<FoundCheckpoint> candidates = find_checkpoints(files, path);
    if (candidates.empty()) candidates.push_back({path, Step(0), find_sites(files, path)});
    for (const auto& checkpoint : candidates)
        for (const auto& site : checkpoint.sites) {
            if (site.complete()) return site.path;
            problems.push_back(fmt::format("[checkpoint] {} is not complete: {}", site.path.string(), site.problem));
        }
    if (problems.empty()) throw UserError(fmt::format("[checkpoint] no checkpoint in {}", path.string()));
    throw CorruptDataError(fmt::format("{}", fmt::join(problems, "\n")));
}

template <class From, class To>
void convert(std::span<const std::byte> from, const Box& from_box, std::span<To> to, const Box& to_box,
             const Box& common) {
    const std::span typed(reinterpret_cast<const From*>(from.data()), from.size() / sizeof(From));
    copy_box(typed, from_box, to, to_box, common);
}

}  // namespace

struct CheckpointReader::State {
    struct StoredPiece {
        CheckpointPiece piece;
        std::size_t part = 0;  // index into parts
    };
    struct Part {
        std::filesystem::path tensor_path;
        CheckpointMetadata metadata;
        std::unique_ptr<ReadableFile> file;
    };

    std::filesystem::path directory;
    std::vector<std::string> passed_over;
    std::vector<Part> parts;
    std::vector<TensorInfo> tensors;
    std::map<std::string, std::vector<StoredPiece>> pieces;

    void load(const FileSystem& files);
    const std::vector<StoredPiece>& pieces_of(const std::string& name) const;
    void read_verified(const StoredPiece& stored, std::span<std::byte> bytes) const;
    template <class T>
    void read(const std::string& name, const Box& box, std::span<T> values) const;
};

void CheckpointReader::State::load(const FileSystem& files) {
    const std::string problem = site_problem(files, directory);
    if (!problem.empty()) throw CorruptDataError(fmt::format("[checkpoint] {}: {}", directory.string(), problem));
    std::int32_t ranks = 1;
    for (Rank rank(0); rank.value() < ranks; rank = rank.next()) {
        const auto part = part_directory(directory, rank);
        Manifest manifest = load_manifest(files, part);
        ranks = manifest.part.ranks;
        for (auto& piece : manifest.pieces) {
            auto& stored = pieces[piece.name];
            const bool agrees = stored.empty() || (stored[0].piece.shape == piece.shape &&
                                                   stored[0].piece.dtype == piece.dtype);
            if (!agrees)
                throw CorruptDataError(fmt::format("[checkpoint] {}: {} has another shape or dtype elsewhere",
                                                   part.string(), piece.name));
            stored.push_back({std::move(piece), parts.size()});
        }
        const auto tensor_path = part / manifest.tensor_file;
        parts.push_back({tensor_path, std::move(manifest.metadata), files.open(tensor_path)});
    }
    for (const auto& [name, stored] : pieces)
        tensors.push_back({name, stored[0].piece.shape, stored[0].piece.dtype});
}

const std::vector<CheckpointReader::State::StoredPiece>& CheckpointReader::State::pieces_of(
    const std::string& name) const {
    const auto found = pieces.find(name);
    if (found == pieces.end())
        throw CorruptDataError(fmt::format("[checkpoint] {} holds no tensor {}", directory.string(), name));
    return found->second;
}

void CheckpointReader::State::read_verified(const StoredPiece& stored, std::span<std::byte> bytes) const {
    const auto& part = parts[stored.part];
    part.file->read(stored.piece.offset_bytes, bytes);
    if (blake2b_hex(bytes) != stored.piece.blake2b)
        throw CorruptDataError(fmt::format("[checkpoint] {}: the bytes of {}{} differ from their hash",
                                           part.tensor_path.string(), stored.piece.name,
                                           to_string(stored.piece.box)));
}

template <class T>
void CheckpointReader::State::read(const std::string& name, const Box& box, std::span<T> values) const {
    const auto& candidates = pieces_of(name);
    const auto& [shape, dtype] = std::tie(candidates[0].piece.shape, candidates[0].piece.dtype);
    ATOLL_CHECK(dtype == DType::f32 || dtype == DType::f64, "{} is {}", name, atl::name(dtype));
    ATOLL_CHECK_EQ(box.ranges.size(), shape.size(), "{}", name);
    ATOLL_CHECK_EQ(box.elements(), static_cast<std::int64_t>(values.size()), "{}", name);
    std::vector<Box> missing;
    if (!values.empty()) missing.push_back(box);
    std::vector<std::byte> buffer;
    for (const auto& stored : candidates) {
        const Box& stored_box = stored.piece.box;
        if (!cut_away(missing, stored_box)) continue;  // a replica of what is there already
        if (stored_box == box && size_bytes(dtype) == sizeof(T)) {
            read_verified(stored, std::as_writable_bytes(values));
            continue;
        }
        buffer.resize(static_cast<std::size_t>(stored.piece.bytes()));
        read_verified(stored, buffer);
        const Box common = *intersect(stored_box, box);
        dtype == DType::f32 ? convert<float>(buffer, stored_box, values, box, common)
                            : convert<double>(buffer, stored_box, values, box, common);
    }
    if (!missing.empty())
        throw CorruptDataError(fmt::format("[checkpoint] {}: no piece of {} holds {}", directory.string(),
                                           name, to_string(missing[0])));
}

CheckpointReader::CheckpointReader(const FileSystem& files, const std::filesystem::path& path)
    : state_(std::make_unique<State>()) {
    state_->directory = find_site(files, path, state_->passed_over);
    state_->load(files);
}
CheckpointReader::~CheckpointReader() = default;

const std::filesystem::path& CheckpointReader::site_directory() const {
    return state_->directory;
}

const std::vector<std::string>& CheckpointReader::passed_over() const {
    return state_->passed_over;
}

const CheckpointMetadata& CheckpointReader::metadata(Rank rank) const {
    ATOLL_CHECK(rank.value() >= 0 && rank.value() < ranks(), "rank {} of {}", rank, ranks());
    return state_->parts[static_cast<std::size_t>(rank.value())].metadata;
}

std::int32_t CheckpointReader::ranks() const {
    return static_cast<std::int32_t>(state_->parts.size());
}

const std::vector<TensorInfo>& CheckpointReader::tensors() const {
    return state_->tensors;
}

std::vector<TensorInfo> CheckpointReader::section(const std::string& section) const {
    const std::string prefix = section + "/";
    std::vector<TensorInfo> result;
    for (const auto& info : state_->tensors)
        if (info.name.starts_with(prefix))
            result.push_back({info.name.substr(prefix.size()), info.shape, info.dtype});
    return result;
}

bool CheckpointReader::contains(const std::string& name) const {
    return state_->pieces.contains(name);
}

const TensorInfo& CheckpointReader::tensor(const std::string& name) const {
    state_->pieces_of(name);
    return *std::ranges::lower_bound(state_->tensors, name, {}, &TensorInfo::name);
}

void CheckpointReader::read(const std::string& name, std::span<float> values) const {
    state_->read(name, Box::whole(tensor(name).shape), values);
}
void CheckpointReader::read(const std::string& name, std::span<double> values) const {
    state_->read(name, Box::whole(tensor(name).shape), values);
}
void CheckpointReader::read(const std::string& name, const Box& box, std::span<float> values) const {
    state_->read(name, box, values);
}
void CheckpointReader::read(const std::string& name, const Box& box, std::span<double> values) const {
    state_->read(name, box, values);
}

std::vector<std::byte> CheckpointReader::read_bytes(const std::string& name) const {
    const auto& stored = state_->pieces_of(name);
    ATOLL_CHECK(stored.size() == 1 && stored[0].piece.dtype == DType::u8, "{} isn't a run of bytes", name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored[0].piece.bytes()));
    state_->read_verified(stored[0], bytes);
    return bytes;
}

void CheckpointReader::verify() const {
    std::vector<std::byte> buffer;
    for (const auto& [name, stored] : state_->pieces)
        for (const auto& piece : stored) {
            buffer.resize(static_cast<std::size_t>(piece.piece.bytes()));
            state_->read_verified(piece, buffer);
        }
}

}  // namespace atl
