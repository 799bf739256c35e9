// read_file: reads a complete file into a `bytes` object that owns the memory.
//
//   mr::picture p = mr::jpeg(mr::read_file("photos/cat/1.jpg")).resize(224, 224);   // decoded later from p
//   const mr::bytes label = mr::read_file("s3://photos/cat/1.txt", mr::remote());
//
// The name() of the result is the file extension in lower case. If the bytes cannot be decoded later, the error message
// contains the path.
// Errors: io_error for a file that cannot be opened or read. Threads: any thread. Cost for a local file: five system
// calls and a few allocations.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/io/file/storage.hpp>
#include <millrace/item/bytes.hpp>

#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI {

/// Returns the bytes of a file. The result owns its memory. An image plan that uses the result keeps the memory alive.
/// Throws io_error if the file cannot be read.
bytes read_file(const std::string& path, const storage& at = {});

namespace detail {

/// Returns the field name of a file: its extension in lower case without the dot, or "file" if it has no extension.
std::string field_of_proc_file(std::string_view name);

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/file/impl/read_file.inl>
#endif
