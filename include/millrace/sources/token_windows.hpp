// The windows of a file of tokens: their number, and the bytes of each window.
//
//   const mr::detail::token_windows windows(layout, {.length = 2049, .stride = 2048});
//   windows.count();   windows.place(7);            // place() returns a byte_range
//   const mr::packed row = mr::detail::window_of(bytes, {.of = windows, .number = 7, .max_id = 50256, .file = name});
//
// Window i begins at token i * stride. With keep_short, the tokens after the last complete window form a shorter
// window. With `documents`, window i is document i of Megatron's .idx file, which is stored next to the .bin file.
// Errors: window_of() throws data_error for an id greater than max_id. Threads: immutable.
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/io/file/storage.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/sources/token_layout.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Reads an .idx file of Megatron. This file describes the documents of a .bin file, and the type of the tokens.
//
// A document consists of one or more consecutive sequences of the index. Documents without tokens are omitted.
// Cost: 8 bytes of memory for each document. The lengths and offsets of the sequences are read in pieces.
// Errors: data_error with the name of the .idx file, if its version or type is not supported, or if it does not match
// the .bin file.
// Threads: pure functions. Source of the format: Megatron-LM, megatron/core/datasets/indexed_dataset.py.

/// The content of an .idx file.
struct megatron_index {
  token_type type{};
  /// Index of each document's first token in the .bin file. The last entry is the number of all tokens.
  std::vector<std::uint64_t> first_tokens{};
  std::uint64_t empty_documents = 0;
};

/// Returns the name of the .idx file that belongs to a .bin file, or "" if `bin_name` does not end in .bin.
std::string megatron_index_name(std::string_view bin_name);

/// Returns the token type that the .idx file states. Returns nothing if the file is missing, has another format, or
/// states a type that is not supported.
std::optional<token_type> megatron_token_type(const storage& at, std::string_view bin_name);

/// Returns the documents of a .bin file, or nothing if no .idx file exists. `bin_bytes` is the size of the .bin file.
std::optional<megatron_index> read_megatron_index(const storage& at, std::string_view bin_name,
                                                  std::uint64_t bin_bytes);

/// The rule by which files of tokens are divided into windows.
struct token_window_rule {
  std::size_t length = 1024, stride = 1024;   ///< in tokens
  bool keep_short = false;
  bool documents = false;   ///< windows are the documents of an .idx file; the other members are ignored
};

/// The windows of one file.
class token_windows {
 public:
  token_windows() = default;
  token_windows(const token_layout& layout, const token_window_rule& rule) noexcept;
  token_windows(const token_layout& layout, megatron_index index);

  std::uint64_t count() const noexcept { return count_; }
  /// Returns the offset and the size of a window in the file, in bytes.
  byte_range place(std::uint64_t window) const noexcept {
    if (documents_) {
      const std::uint64_t* const first = documents_->first_tokens.data() + window;
      return {layout_.first_byte + first[0] * layout_.type.bytes, (first[1] - first[0]) * layout_.type.bytes};
    }
    const std::uint64_t first = window * rule_.stride, left = layout_.tokens - first;
    return {layout_.first_byte + first * layout_.type.bytes,
            std::min<std::uint64_t>(rule_.length, left) * layout_.type.bytes};
  }
  /// Returns the total size of the windows in bytes. A short window counts as a complete window.
  std::uint64_t window_bytes() const noexcept {
    return documents_ ? layout_.tokens * layout_.type.bytes : count_ * rule_.length * layout_.type.bytes;
  }
  /// Returns the total size of the windows in bytes, including the gaps between them.
  std::uint64_t spanned_bytes() const noexcept {
    return documents_ ? window_bytes() : count_ * std::max(rule_.stride, rule_.length) * layout_.type.bytes;
  }
  /// Returns whether the windows are so far apart that the bytes between them should not be read.
  bool is_sparse() const noexcept { return !documents_ && rule_.stride > 2 * rule_.length; }
  /// Returns the number of documents without tokens, which are not windows.
  std::uint64_t empty_documents() const noexcept { return documents_ ? documents_->empty_documents : 0; }
  /// Adds two counts: documents without tokens, and tokens after the last window.
  void report(event_counts& counts) const noexcept {
    if (empty_documents() > 0) counts.count("documents without tokens", empty_documents());
    if (left_over() > 0) counts.count("tokens after the last complete window of a file", left_over());
  }
  /// Returns the number of tokens after the end of the last window.
  std::uint64_t left_over() const noexcept { return layout_.tokens - end_; }
  const token_layout& layout() const noexcept { return layout_; }
  /// Returns a digest of the document boundaries, or 0 without documents.
  std::uint64_t digest_of_documents() const noexcept {
    return documents_ ? digest_bytes(std::as_bytes(std::span(documents_->first_tokens))) : 0;
  }

 private:
  token_layout layout_{};
  token_window_rule rule_{};
  std::shared_ptr<const megatron_index> documents_{};   // null unless the windows are documents
  std::uint64_t count_ = 0, end_ = 0;                   // end_: end of the last window, in tokens
};

/// A window to decode.
struct stored_token_window {
  const token_windows& of;
  std::uint64_t number;
  std::uint32_t max_id;
  std::string_view file;
};
/// Decodes the ids of a window.
packed window_of(std::span<const std::byte> stored, const stored_token_window& window);

/// Returns the greatest valid id. A vocabulary of 0 means that every id is valid.
constexpr std::uint32_t max_id_of(std::size_t vocabulary) noexcept {
  constexpr std::size_t all = ~std::uint32_t{0};
  return static_cast<std::uint32_t>(vocabulary == 0 ? all : std::min(vocabulary - 1, all));
}

/// An open file of tokens, and its storage.
struct opened_tokens {
  const storage& at;
  const std::string& name;
  byte_source& file;
};
/// Returns the windows of a file. With `documents`, reads only Megatron's .idx file. Otherwise, reads the header of the
/// file. If neither the header nor the options state the token type, reads the type from the .idx file, if it exists.
/// Throws the errors of layout_of_tokens() and read_megatron_index(). Throws setup_error if documents are requested,
/// but the .idx file does not exist.
token_windows read_token_windows(const opened_tokens& opened, const token_layout_options& options,
                                 const token_window_rule& rule);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_windows.inl>
#endif
