// Definitions for token_windows.hpp.
#pragma once

#include <millrace/sources/token_windows.hpp>

#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

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
  if (index.name.empty() || !find_file_stamp(at, index.name)) return std::nullopt;
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
    index.fail("is in another format: expected a file that begins with MMIDIDX",
               "Pass a .bin file whose .idx file was written by Megatron");
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
    index.fail("describes another .bin file: got " + std::to_string(token) + " tokens in the " +
                   std::to_string(sequence) + " sequences of its documents, expected the " + std::to_string(tokens) +
                   " tokens of the .bin file in " + std::to_string(sequences) + " sequences",
               "Copy both files again");
  return result;
}

MILLRACE_INLINE token_windows::token_windows(const token_layout& layout, const token_window_rule& rule) noexcept
    : layout_(layout), rule_(rule) {
  const std::uint64_t tokens = layout.tokens;
  if (tokens >= rule.length) {
    count_ = (tokens - rule.length) / rule.stride + 1;
    end_ = (count_ - 1) * rule.stride + rule.length;
  }
  const bool has_short = rule.keep_short && end_ < tokens && count_ * rule.stride < tokens;
  if (!has_short) return;
  ++count_;
  end_ = tokens;
}

MILLRACE_INLINE token_windows::token_windows(const token_layout& layout, megatron_index index)
    : layout_(layout),
      documents_(std::make_shared<const megatron_index>(std::move(index))),
      count_(documents_->first_tokens.size() - 1),
      end_(layout.tokens) {}

MILLRACE_INLINE packed window_of(std::span<const std::byte> stored, const stored_token_window& window) {
  const token_type type = window.of.layout().type;
  packed row;
  row.ids.resize(stored.size() / type.bytes);
  const std::size_t good = decode_tokens(stored.data(), type, window.max_id, row.ids);
  if (good == row.ids.size()) return row;
  const std::int64_t limit = type.is_signed && type.bytes < 8 ? std::int64_t{1} << (8 * type.bytes - 1) : 0;
  std::uint64_t most = window.max_id;
  if (limit > 0) most = std::min(most, static_cast<std::uint64_t>(limit - 1));
  throw data_error("a token is not in the vocabulary: got id " +
                       token_file_text(stored.data() + good * type.bytes, type) + ", expected 0 to " +
                       std::to_string(most),
                   "Check token_files_options::vocabulary and token_bytes, and the tokenizer that wrote the file",
                   {.stage = "tokens",
                    .shard = std::string(window.file),
                    .offset_bytes = window.of.place(window.number).offset_bytes + good * type.bytes});
}

MILLRACE_INLINE token_windows read_token_windows(const opened_tokens& opened, const token_layout_options& options,
                                                 const token_window_rule& rule) {
  const std::uint64_t bytes = size_of_open(opened.at, opened.file);
  std::vector<std::byte> front;
  token_layout_options resolved = options;
  std::optional<megatron_index> index;
  if (rule.documents) {
    index = read_megatron_index(opened.at, opened.name, bytes);
    if (!index)
      throw setup_error("token_files() finds no documents: Megatron's .idx file next to the file does not exist",
                        "Pass a .bin file with its .idx file, or omit token_files_options::documents",
                        {.stage = "tokens", .shard = opened.name});
    return {{.tokens = bytes / index->type.bytes, .type = index->type}, std::move(*index)};
  }
  if (!options.header_bytes) {
    front.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, token_file_head::front_bytes)));
    front.resize(read_fully(opened.file, 0, front));
    const file_kind kind = kind_of_file({.front = front, .file_bytes = bytes});
    if (options.token_bytes == 0 && kind == file_kind::unknown)
      if (const auto type = megatron_token_type(opened.at, opened.name)) resolved.token_bytes = type->bytes;
  }
  return {layout_of_tokens({.name = opened.name, .front = front, .file_bytes = bytes}, resolved), rule};
}

}}}   // namespace millrace::detail
