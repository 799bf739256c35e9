// Wraps the handle and the error texts of libarchive, which reads tar shards.
//
//   mr::detail::archive_reader handle = mr::detail::open_archive_reader();
//   if (archive_read_support_format_tar(handle.get()) != ARCHIVE_OK)
//     throw std::runtime_error(mr::detail::archive_text(handle.get()));   // "" if libarchive has no text
//
// Only this file includes libarchive's headers, and no public signature contains its types. Millrace never sets a
// locale, and never enables a filter that runs an external program.
// Errors: std::bad_alloc. Threads: one thread at a time per handle.
#pragma once

#include <millrace/base/version.hpp>

#include <memory>
#include <new>
#include <string>

#if !__has_include(<archive.h>)
#error "millrace: libarchive is not installed: apt-get install libarchive-dev"
#endif
#include <archive.h>
#include <archive_entry.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Frees a handle.
struct archive_read_closer {
  void operator()(struct ::archive* handle) const noexcept { ::archive_read_free(handle); }
};

/// A handle that frees itself.
using archive_reader = std::unique_ptr<struct ::archive, archive_read_closer>;

/// Returns a new handle. Throws std::bad_alloc if memory is exhausted.
inline archive_reader open_archive_reader() {
  archive_reader handle(::archive_read_new());
  if (!handle) throw std::bad_alloc();
  return handle;
}

/// Returns libarchive's text for the last failure, or "" if libarchive has no text.
inline std::string archive_text(struct ::archive* handle) {
  const char* text = ::archive_error_string(handle);
  return text ? text : "";
}

}}}   // namespace millrace::detail
