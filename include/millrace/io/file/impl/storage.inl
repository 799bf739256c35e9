// Definitions for storage.hpp.
#pragma once

#include <millrace/io/file/storage.hpp>

#include <millrace/base/digest.hpp>
#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void throw_cannot_list(const std::string& prefix) {
  throw setup_error(
      "the storage of '" + printable(prefix) + "' cannot list its files, but a glob or a folder needs this list",
      "Name the files with braces, such as train-{000..146}.tar, or add list(prefix) to the storage");
}

MILLRACE_RARE void check_file_end(const std::string& name, const file_identity& identity, std::uint64_t offset_bytes) {
  if (offset_bytes < identity.size_bytes)
    throw io_error("the file ends too early: expected the " + std::to_string(identity.size_bytes) +
                       " bytes that its identity() states",
                   "Check that no other program writes to the file, and that the storage's read_at() returns as many "
                   "bytes as identity() states",
                   {.shard = name, .offset_bytes = offset_bytes});
}

MILLRACE_RARE file_stamp stamp_of(const file_identity& identity) noexcept {
  const std::string& version = identity.version;
  return {.size_bytes = identity.size_bytes,
          .changed = version.empty() ? 0 : static_cast<std::int64_t>(digest_bytes(bytes_of(version)))};
}

MILLRACE_RARE std::optional<file_stamp> find_file_stamp(const storage& at, const std::string& name) {
  if (!at.is_local()) {
    const auto identity = at->find(name);
    return identity ? std::optional(stamp_of(*identity)) : std::nullopt;
  }
  struct ::stat status{};
  if (posix_files::stat_path(name.c_str(), status) == -1) return std::nullopt;
  return file_stamp{.size_bytes = static_cast<std::uint64_t>(status.st_size), .changed = modified_ns(status)};
}

MILLRACE_RARE std::unique_ptr<byte_source> open_file(const storage& at, const std::string& name) {
  if (at.is_local()) return std::unique_ptr<byte_source>(new file_source(name));
  if (auto file = at->open(name)) return file;
  throw io_error("the storage does not contain this file", "Check the name", {.shard = name});
}

MILLRACE_RARE std::uint64_t size_of_open(const storage& at, const byte_source& file) {
  return at.is_local() ? static_cast<const file_source&>(file).size_bytes()
                       : static_cast<const stored_file&>(file).identity().size_bytes;
}

MILLRACE_RARE std::optional<std::string> front_of_stored_file(const storage& at, const std::string& name,
                                                              std::size_t max_bytes) {
  const auto file = at->open(name);
  if (!file) return std::nullopt;
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(max_bytes, file->identity().size_bytes)), '\0');
  text.resize(read_fully(*file, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

}}}   // namespace millrace::detail
