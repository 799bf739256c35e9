// Identifies a file of an unexpected kind, and returns advice on using the file.
//
//   if (const auto other = mr::detail::foreign_to_shards(front))
//     throw mr::data_error("the shard is not a tar archive: it looks like " + other->name, other->advice);
//
// `front` is the first chunk of the file, or of its decompressed content. If the content is shorter than 64 KiB,
// `front` is the complete content.
// Errors: std::bad_alloc. Threads: pure functions; any thread.
#pragma once

#include <millrace/base/file_kind.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A kind of file. `name` begins with an article. `advice` is a sentence without a full stop.
struct foreign_file {
  std::string name{}, advice{};
};

/// Returns the kind of a file that should be a tar archive. Returns nothing if the kind is tar or unknown.
std::optional<foreign_file> foreign_to_shards(std::string_view front);

/// Returns the kind of a file that should contain lines of text. Returns nothing if the kind is text or unknown.
std::optional<foreign_file> foreign_to_lines(std::string_view front);

/// Returns advice on using a file of this kind as training data.
std::string advice_on(file_kind kind);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/foreign_file.inl>
#endif
