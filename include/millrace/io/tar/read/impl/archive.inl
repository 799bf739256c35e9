// Defines what archive.hpp declares.
#pragma once

#include <millrace/io/tar/read/archive.hpp>

#include <new>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE archive_reader open_archive_reader() {
  archive_reader handle(::archive_read_new());
  if (!handle) throw std::bad_alloc();
  return handle;
}

MILLRACE_INLINE std::string archive_text(struct ::archive* handle) {
  const char* text = ::archive_error_string(handle);
  return text ? text : "";
}

}}}  // namespace millrace::detail
