// Definitions for read_file.hpp.
#pragma once

#include <millrace/io/file/read_file.hpp>

#include <millrace/base/error.hpp>
#include <millrace/item/record_builder.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

MILLRACE_INLINE std::string field_of_proc_file(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);   // without a slash, npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return "file";
  std::string extension(name.substr(dot + 1));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

}   // namespace detail

MILLRACE_INLINE bytes read_file(const std::string& path, const storage& at) {
  const auto file = detail::open_file(at, path);
  const std::uint64_t size = detail::size_of_open(at, *file);
  const byte_range all{};
  if (!at.is_local()) file->will_read({&all, 1});
  block_pool pool(0);   // a pool that retains no blocks
  record_builder build(pool);
  build.begin(path, {}, error_location::unknown);
  const std::span<std::byte> buffer = build.add_field(detail::field_of_proc_file(path), static_cast<std::size_t>(size));
  if (const std::size_t got = detail::read_fully(*file, 0, buffer); got != buffer.size())
    throw io_error("the file ends too early: got " + std::to_string(got) + " bytes, expected " + std::to_string(size),
                   "Check that no other program writes to this file", {.shard = path});
  return build.finish().field(0);
}

}}   // namespace millrace
