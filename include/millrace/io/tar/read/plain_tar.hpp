// Reads the headers of an ordinary tar archive, without its payloads.
//
//   mr::detail::plain_tar tar(source, pool);
//   while (tar.next() == mr::detail::plain_tar::result::member) use(tar.member());
//
// Reads ustar and GNU headers. Long names and large sizes may be stored as in ustar, GNU or pax. The result `odd` means
// that a header is damaged, rare or ambiguous. Examples are a sparse member, a pax name that is not ASCII, and a header
// without the ustar signature. If the result is `odd`, the caller reads the shard with tar_reader. Errors: the errors
// of the source. Threads: not thread-safe.
// Format: POSIX.1-2017, pax utility, "ustar Interchange Format" and "pax Interchange Format"; GNU tar manual, section
// "Basic Tar Format".
#pragma once

#include <millrace/io/tar/format/header_window.hpp>
#include <millrace/io/tar/read/tar_reader.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The members of an ordinary archive, in order.
class plain_tar {
 public:
  enum class result { member, end, odd };

  plain_tar(byte_source& source, block_pool& pool) : window_(source, pool) {}

  /// Moves to the next member. Returns `end` at a proper end marker, and `odd` if tar_reader has to read the shard.
  result next();

  /// Returns the current member. Its name is valid until the next call of next().
  const tar_member& member() const noexcept { return member_; }

 private:
  static constexpr std::uint64_t max_extension_bytes = 64 << 10;
  static constexpr std::uint64_t max_padding_bytes = std::uint64_t{16} << 20;

  struct header {
    std::uint64_t size_bytes = 0;
    char type = 0;
    bool gnu = false;
  };

  static std::string_view text(std::span<const std::byte> bytes) noexcept;
  /// Reads one header block into `h`, and sets name_. Returns false if the header is not ordinary.
  bool read_header(std::uint64_t at, header& h);

  /// Returns whether all numbers are well-formed. libarchive requires this in the first header of an archive.
  static bool numbers_are_plain(std::string_view block) noexcept;
  bool apply_long_name(std::string_view payload, const header& h);
  bool apply_pax(std::string_view records);
  bool apply_record(std::string_view key, std::string_view value);

  /// Returns `end` if the rest of the file is a complete end marker and at most max_padding_bytes of zeros. Otherwise
  /// returns `odd`.
  result end_of_shard(std::uint64_t marker_at);

  header_window window_;
  tar_member member_{};
  std::uint64_t next_bytes_ = 0;
  std::string name_, long_name_;
  std::optional<std::uint64_t> pax_size_;
  bool ended_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/plain_tar.inl>
#endif
