// The door to libarchive, which reads shards: its handle as a value, its error text as a string. The only file that
// includes its headers.
//
//   detail::archive_reader handle = detail::open_archive_reader();
//   archive_read_support_format_tar(handle.get());
//   detail::archive_text(handle.get());            // empty where it gives no reason
//
// Internal: nothing of it appears in a public signature. Threads: a handle belongs to one thread at a time. No locale
// is ever set, and no filter that runs a program is ever enabled.
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

struct archive_read_closer {
  void operator()(struct ::archive* handle) const noexcept { ::archive_read_free(handle); }
};

using archive_reader = std::unique_ptr<struct ::archive, archive_read_closer>;

inline archive_reader open_archive_reader() {
  archive_reader handle(::archive_read_new());
  if (!handle) throw std::bad_alloc();
  return handle;
}

/// libarchive's account of the last failure; it has none for some.
inline std::string archive_text(struct ::archive* handle) {
  const char* text = ::archive_error_string(handle);
  return text ? text : "";
}

}}}  // namespace millrace::detail
