// Percent encoding of the parts of a URL, as Amazon S3 signs them.
//
//   mr::detail::uri_encoded("a b/c=1", mr::detail::slash::kept);     // "a%20b/c%3D1"
//   mr::detail::uri_decoded("a%20b+c");                              // "a b+c"
//
// Every byte but letters, digits and -._~ is encoded, with uppercase digits. Errors: none; text that is not encoded
// right decodes to nothing. Threads: pure. Source: RFC 3986, section 2.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Says whether slashes stay, as in a key, or are encoded, as in a query's value.
enum class slash : std::uint8_t { kept, encoded };

std::string uri_encoded(std::string_view text, slash what);

/// Says what a plus stands for: itself in a path, a blank in a form and in the names that S3 lists.
enum class plus : std::uint8_t { itself, blank };

/// Returns the text; nothing if a percent sign is not followed by two digits.
std::optional<std::string> uri_decoded(std::string_view encoded, plus what = plus::itself);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/uri_encoding.inl>
#endif
