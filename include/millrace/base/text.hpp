// Gives the bytes of a text, for functions that take bytes.
//
//   mr::crc32c(mr::detail::bytes_of(text));
//
// std::as_bytes(std::span(text)) does the same, but costs compile time: it proves again that a text is a contiguous
// range. Errors: none. Threads: any. Lifetime: the bytes live as long as the text.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}}}  // namespace millrace::detail
