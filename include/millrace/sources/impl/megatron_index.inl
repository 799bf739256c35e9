// Definitions for megatron_index.hpp.
#pragma once

#include <millrace/sources/megatron_index.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

namespace megatron {

constexpr std::size_t head_bytes = 34;   // mark (9 bytes), version, type code, number of sequences, number of documents

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Returns the type with this code. Returns a type of 0 bytes for a floating-point type, and for an unknown code.
MILLRACE_INLINE token_type type_of_code(unsigned code) noexcept {
  constexpr token_type types[] = {{0, false}, {1, false}, {1, true},  {2, true}, {4, true},
                                  {8, true},  {0, false}, {0, false}, {2, false}};
  return code < std::size(types) ? types[code] : token_type{0, false};
}

/// An array of numbers in a file, read in pieces.
template <class T>
class stored_array {
 public:
  stored_array(byte_source& file, std::uint64_t first_byte, std::uint64_t count)
      : file_(&file), first_byte_(first_byte), count_(count) {}

  T operator[](std::uint64_t i) {
    if (i < piece_at_ || i >= piece_at_ + piece_.size()) {
      constexpr std::size_t piece = (std::size_t{256} << 10) / sizeof(T);
      piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece, count_ - i)));
      piece_at_ = i;
      static_cast<void>(read_fully(*file_, first_byte_ + i * sizeof(T), std::as_writable_bytes(std::span<T>(piece_))));
    }
    return piece_[static_cast<std::size_t>(i - piece_at_)];
  }

 private:
  byte_source* file_;
  std::uint64_t first_byte_, count_;
  std::vector<T> piece_{};
  std::uint64_t piece_at_ = 0;
};

/// An open .idx file with its head.
struct opened_index {
  std::string name;
  std::unique_ptr<byte_source> file{};
  std::array<std::byte, head_bytes> head{};
  bool is_megatron = false;

  [[noreturn]] void fail(const std::string& problem, std::string hint = "Write both files again with Megatron") const {
    throw data_error("the index of Megatron " + problem, std::move(hint), {.stage = "tokens", .shard = name});
  }
};

MILLRACE_INLINE std::optional<opened_index> open_index(const storage& at, std::string_view bin_name) {
  opened_index index{.name = megatron_index_name(bin_name)};
  if (index.name.empty() || !find_stamp(at, index.name)) return std::nullopt;
  index.file = open_file(at, index.name);
  const std::size_t bytes = read_fully(*index.file, 0, index.head);
  index.is_megatron = bytes >= head_bytes && std::memcmp(index.head.data(), "MMIDIDX\0\0", 9) == 0;
  return index;
}

}   // namespace megatron

MILLRACE_INLINE std::string megatron_index_name(std::string_view bin_name) {
  constexpr std::string_view end = ".bin";
  if (!bin_name.ends_with(end)) return {};
  return std::string(bin_name.substr(0, bin_name.size() - end.size())) + ".idx";
}

MILLRACE_INLINE std::optional<token_type> megatron_token_type(const storage& at, std::string_view bin_name) {
  const auto index = megatron::open_index(at, bin_name);
  if (!index || !index->is_megatron) return std::nullopt;
  const token_type type = megatron::type_of_code(std::to_integer<unsigned>(index->head[17]));
  return type.bytes > 0 ? std::optional(type) : std::nullopt;
}

MILLRACE_INLINE std::optional<megatron_index> read_megatron_index(const storage& at, std::string_view bin_name,
                                                                  std::uint64_t bin_bytes) {
  using namespace megatron;
  auto opened = open_index(at, bin_name);
  if (!opened) return std::nullopt;
  opened_index& index = *opened;
  if (!index.is_megatron)
    index.fail("has another format: expected the mark MMIDIDX", "Pass the .bin file of the index");
  const std::span<const std::byte> head(index.head);
  if (const auto version = number_at<std::uint64_t>(head, 9); version != 1)
    index.fail("has another version: got " + std::to_string(version) + ", expected 1");
  const auto code = std::to_integer<unsigned>(head[17]);
  megatron_index result{.type = type_of_code(code)};
  if (result.type.bytes == 0)
    index.fail("has tokens of another type: got code " + std::to_string(code) + ", expected an integer (1 to 5, or 8)");
  const auto sequences = number_at<std::uint64_t>(head, 18), documents = number_at<std::uint64_t>(head, 26);
  const std::uint64_t bytes = size_of_open(at, *index.file), limit = bytes / 8;
  // The .idx file of a multimodal data set ends with one more byte for each sequence.
  const std::uint64_t expected = head_bytes + 12 * std::min(sequences, limit) + 8 * std::min(documents, limit);
  if (sequences > limit || documents > limit || documents == 0 || (bytes != expected && bytes != expected + sequences))
    index.fail("does not have the size that its counts declare: got " + std::to_string(bytes) + " bytes, " +
               std::to_string(sequences) + " sequences and " + std::to_string(documents) + " document bounds");

  stored_array<std::int32_t> lengths(*index.file, head_bytes, sequences);
  stored_array<std::int64_t> offsets(*index.file, head_bytes + 4 * sequences, sequences);
  stored_array<std::int64_t> bounds(*index.file, head_bytes + 12 * sequences, documents);
  const std::uint64_t tokens = bin_bytes / result.type.bytes;
  result.first_tokens.reserve(static_cast<std::size_t>(documents));
  std::uint64_t sequence = 0, token = 0;
  for (std::uint64_t d = 0; d < documents; ++d) {
    const auto bound = static_cast<std::uint64_t>(bounds[d]);
    if (bound > sequences || bound < sequence || (d == 0 && bound != 0))
      index.fail("has documents in the wrong order: document " + std::to_string(d) + " begins at sequence " +
                 std::to_string(static_cast<std::int64_t>(bound)) + " of " + std::to_string(sequences));
    for (; sequence < bound; ++sequence) {
      const std::int32_t length = lengths[sequence];
      if (length < 0 || static_cast<std::uint64_t>(offsets[sequence]) != token * result.type.bytes)
        index.fail("has sequences that do not follow one another: sequence " + std::to_string(sequence) +
                   " is at byte " + std::to_string(offsets[sequence]) + " with " + std::to_string(length) +
                   " tokens, expected byte " + std::to_string(token * result.type.bytes));
      token += static_cast<std::uint64_t>(length);
    }
    if (!result.first_tokens.empty() && result.first_tokens.back() == token) ++result.empty_documents;
    else result.first_tokens.push_back(token);
  }
  if (sequence != sequences || token != tokens || bin_bytes % result.type.bytes != 0)
    index.fail("describes another .bin file: got " + std::to_string(token) + " tokens in documents of " +
                   std::to_string(sequence) + " sequences, expected " + std::to_string(tokens) + " tokens and " +
                   std::to_string(sequences) + " sequences",
               "Copy both files again");
  return result;
}

}}}   // namespace millrace::detail
