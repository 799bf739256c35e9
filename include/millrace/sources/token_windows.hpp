// The windows of a file of tokens: their number, and the bytes of each one.
//
//   const mr::detail::token_windows windows(layout, {.length = 2049, .stride = 2048});
//   windows.count();   windows.place(7);            // a byte_range
//   const mr::packed row = mr::detail::window_of(bytes, {.of = windows, .number = 7, .max_id = 50256, .file = name});
//
// Window i begins at token i * stride. With keep_short, the tokens after the last complete window form a shorter
// window.
// Errors: window_of() throws data_error for an id beyond max_id. Threads: immutable.
#pragma once

#include <millrace/io/file/storage.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/sources/token_layout.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// How files of tokens are cut into windows.
struct window_rule {
  std::size_t length = 1024, stride = 1024;   ///< in tokens
  bool keep_short = false;
};

/// The windows of one file.
class token_windows {
 public:
  token_windows() = default;
  token_windows(const token_layout& layout, const window_rule& rule) noexcept;

  std::uint64_t count() const noexcept { return count_; }
  /// Returns the bytes of a window.
  byte_range place(std::uint64_t window) const noexcept {
    const std::uint64_t first = window * rule_.stride, left = layout_.tokens - first;
    return {layout_.first_byte + first * layout_.type.bytes,
            std::min<std::uint64_t>(rule_.length, left) * layout_.type.bytes};
  }
  /// Returns the tokens after the end of the last window.
  std::uint64_t left_over() const noexcept { return layout_.tokens - end_; }
  const token_layout& layout() const noexcept { return layout_; }

 private:
  token_layout layout_{};
  window_rule rule_{};
  std::uint64_t count_ = 0, end_ = 0;   // end_: end of the last window, in tokens
};

/// A window to decode.
struct stored_window {
  const token_windows& of;
  std::uint64_t number;
  std::uint32_t max_id;
  std::string_view file;
};
/// Returns the ids in the bytes of a window.
packed window_of(std::span<const std::byte> stored, const stored_window& window);

/// Returns the greatest id of a vocabulary; 0 means that every id is valid.
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
/// Reads the front of a file and returns its layout. The .idx file of Megatron next to a .bin file sets the token type.
/// Throws the same data_error as layout_of_tokens().
token_layout read_token_layout(const opened_tokens& opened, const token_layout_options& options);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/sources/impl/token_windows.inl>
#endif
