// The safetensors format: what is written is read back, other dtypes become f32 exactly, sharded sets are one
// model, and damaged or foreign files are named. Files written by the reference library are in tests/golden.
#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "support/fault_file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

class Safetensors : public testing::Test {
  protected:
    std::filesystem::path path(const std::string& name = "model.safetensors") const {
        return directory_.path() / name;
    }

    // A file with this header and these values after it.
    void write_raw(const std::string& header, const std::string& values,
                   const std::string& name = "model.safetensors") {
        std::string text(8, '\0');
        const std::uint64_t size = header.size();
        std::memcpy(text.data(), &size, 8);
        files_.write_text_atomically(path(name), text + header + values);
    }

    template <class T>
    static std::string bytes_of(const std::vector<T>& values) {
        return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
    }

    std::vector<float> read_one(const std::string& dtype, const std::string& bytes, std::size_t count) {
        write_raw(fmt::format(R"({{"x":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype, count,
                              bytes.size()),
                  bytes);
        std::vector<float> values(count);
        SafetensorsReader(files_, path()).read("x", values);
        return values;
    }

    void expect_corrupt(const std::string& text) {
        try {
            SafetensorsReader reader(files_, path());
            ADD_FAILURE() << "expected: " << text;
        } catch (const CorruptDataError& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find(text), std::string::npos) << message;
            EXPECT_NE(message.find(path().string()), std::string::npos) << message;
        }
    }

    test::TemporaryDirectory directory_;
    test::FaultFileSystem files_;
};

SafetensorsEntry entry(const std::string& name, const Shape& shape, float first) {
    return {name, shape, [first](std::span<float> values) {
                for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
            }};
}

TEST_F(Safetensors, reads_back_what_it_wrote) {
    write_safetensors(files_, path(), {entry("b", {2, 3}, 10), entry("a", {}, 7), entry("none", {0}, 0)},
                      {{"format", "pt"}});
    const SafetensorsReader reader(files_, directory_.path());
    ASSERT_EQ(reader.tensors().size(), 3u);
    EXPECT_EQ(reader.tensors().at("b").shape, (Shape{2, 3}));
    EXPECT_EQ(reader.tensors().at("b").offset_bytes % 8, 0);
    std::vector<float> b(6), a(1);
    reader.read("b", b);
    EXPECT_EQ(b, (std::vector<float>{10, 11, 12, 13, 14, 15}));
    reader.read("a", a);
    EXPECT_EQ(a[0], 7);
}

TEST_F(Safetensors, converts_the_other_float_formats_exactly) {
    EXPECT_EQ(read_one("F64", bytes_of<double>({1.0 / 3, -4}), 2), (std::vector<float>{1.0f / 3, -4}));
    EXPECT_EQ(read_one("BF16", bytes_of<std::uint16_t>({0x3f80, 0xc040, 0x0001}), 3),
              (std::vector<float>{1, -3, 0x1p-133f}));
    // One, −2, the largest, the smallest normal, the smallest subnormal, −0, infinity.
    const auto values = read_one(
        "F16", bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0400, 0x8001, 0x8000, 0x7c00, 0x7e00}), 8);
    EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 5),
              (std::vector<float>{1, -2, 65504, 0x1p-14f, -0x1p-24f}));
    EXPECT_TRUE(values[5] == 0 && std::signbit(values[5]));
    EXPECT_EQ(values[6], std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(values[7]));
}

TEST_F(Safetensors, reads_long_tensors_chunk_by_chunk) {
    std::vector<double> values(600'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    const auto read = read_one("F64", bytes_of(values), values.size());
    EXPECT_TRUE(std::equal(read.begin(), read.end(), values.begin()));
}

TEST_F(Safetensors, a_sharded_set_is_one_model) {
    write_safetensors(files_, path("one.safetensors"), {entry("a", {2}, 1)}, {});
    write_safetensors(files_, path("two.safetensors"), {entry("b", {1}, 5)}, {});
    const auto index = path("model.safetensors.index.json");
    files_.write_text_atomically(index, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
    const SafetensorsReader reader(files_, directory_.path());
    std::vector<float> b(1);
    reader.read("b", b);
    EXPECT_EQ(b[0], 5);

    files_.write_text_atomically(index, R"({"weight_map":{"c":"one.safetensors"}})");
    EXPECT_THROW(SafetensorsReader(files_, directory_.path()), CorruptDataError);
    files_.write_text_atomically(index, R"({"weight_map":{"a":"three.safetensors"}})");
    EXPECT_THROW(SafetensorsReader(files_, directory_.path()), StorageError);
    files_.write_text_atomically(index, R"([])");
    EXPECT_THROW(SafetensorsReader(files_, directory_.path()), CorruptDataError);
}

TEST_F(Safetensors, a_file_cut_at_any_byte_is_refused) {
    write_safetensors(files_, path(), {entry("a", {4}, 0)}, {});
    const auto whole = files_.read_file(path());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        files_.write_file_atomically(path(), std::span(whole).first(size));
        EXPECT_THROW(SafetensorsReader(files_, path()), CorruptDataError) << size << " bytes";
    }
}

TEST_F(Safetensors, foreign_and_contradictory_files_are_refused) {
    files_.write_text_atomically(path(), "PK\x03\x04 this is a zip archive, as torch.save writes it");
    expect_corrupt("not a safetensors file");
    write_raw("[1]", "");
    expect_corrupt("not a JSON object");
    write_raw(R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", std::string(8, 'x'));
    expect_corrupt("tensor x: 8 bytes don't hold [3] of F32");
    write_raw(R"({"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", std::string(8, 'x'));
    expect_corrupt("don't hold [-2]");
    write_raw(
        R"({"x":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}})",
        "");
    expect_corrupt("don't hold");
    write_raw(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", std::string(8, 'x'));
    expect_corrupt("bytes 8 to 0");
    write_raw(R"({"x":{"dtype":"F32","shape":[2]}})", std::string(8, 'x'));
    expect_corrupt("data_offsets");
}

TEST_F(Safetensors, values_that_overlap_or_belong_to_no_tensor_are_refused) {
    const auto two = [&](const char* first, const char* second, std::size_t bytes) {
        write_raw(fmt::format(R"({{"x":{{"dtype":"F32","shape":[2],"data_offsets":{}}},)"
                              R"("y":{{"dtype":"F32","shape":[2],"data_offsets":{}}}}})",
                              first, second),
                  std::string(bytes, 'x'));
    };
    two("[8,16]", "[0,8]", 16);
    EXPECT_EQ(SafetensorsReader(files_, path()).tensors().size(), 2U);
    two("[0,8]", "[4,12]", 12);
    expect_corrupt("tensor y begins at byte 4 of the values, x ends at 8");
    two("[0,8]", "[0,8]", 8);
    expect_corrupt("overlap");
    two("[0,8]", "[12,20]", 20);
    expect_corrupt("holes");
    two("[0,8]", "[8,16]", 20);
    expect_corrupt("y ends at byte 16 of the values, the file at 20");
}

TEST_F(Safetensors, a_tensor_of_another_dtype_may_stand_in_the_file_but_not_be_read) {
    write_raw(R"({"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "ab");
    const SafetensorsReader reader(files_, path());
    std::vector<float> values(2);
    EXPECT_THROW(reader.read("mask", values), CorruptDataError);
}

TEST_F(Safetensors, a_directory_without_a_model_is_the_users_mistake) {
    EXPECT_THROW(SafetensorsReader(files_, directory_.path()), UserError);
}

TEST_F(Safetensors, a_full_disk_leaves_the_old_file) {
    write_safetensors(files_, path(), {entry("a", {4}, 1)}, {});
    files_.limit_bytes(20);
    EXPECT_THROW(write_safetensors(files_, path(), {entry("a", {4}, 2)}, {}), StorageError);
    std::vector<float> a(4);
    SafetensorsReader(files_, path()).read("a", a);
    EXPECT_EQ(a[0], 1);
}

}  // namespace
}  // namespace atl
