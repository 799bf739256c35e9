// Writes samples into tar shards that WebDataset and every tar program can read.
//
//   mr::shard_writer shards({.pattern = "out/train-%06d.tar", .max_samples = 10'000});
//   shards.write("n01/0001", {{"jpg", image}, {"cls", "7"}});
//   auto totals = shards.close();        // the numbers of shards, samples and bytes
//
// The same samples produce the same bytes on every machine and at any time. Fields are sorted by name. No time, owner
// or locale is written. If the next sample would exceed a limit of the current shard, the writer begins a new shard. A
// sample that is larger than max_bytes gets its own shard. A shard appears under its name when it is complete and on
// the disk. The shard replaces any file with the same name. Without close(), the last shard is discarded. The first
// call of write() removes temporary files that a killed writer of the same pattern left (atomic_file.hpp).
// Errors: setup_error if the pattern does not contain exactly one number (%d). setup_error for a key or a field name
// that readers would not return unchanged, such as a field with upper-case letters. After such a key or field name, the
// writer stays usable. io_error for a full disk and similar failures. After an io_error, the writer is unusable.
// Threads: one thread at a time.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/tar/format/member_name.hpp>
#include <millrace/io/tar/format/tar_header.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/owner.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// A field to be written: its name, and its data as bytes or text. The object contains only views, which must be valid
/// until write() returns.
struct named_bytes {
  named_bytes(std::string_view name_, std::span<const std::byte> data_) noexcept : name(name_), data(data_) {}
  named_bytes(std::string_view name_, std::string_view text) noexcept : name(name_), data(detail::bytes_of(text)) {}

  std::string_view name;
  std::span<const std::byte> data;
};

/// Options of shard_writer.
struct shard_writer_options {
  std::string pattern{};                              ///< path with one %d or %06d for a shard's number; %% means %
  std::uint64_t max_samples = 10'000;                 ///< maximum number of samples in a shard
  std::uint64_t max_bytes = std::uint64_t{1} << 30;   ///< maximum size of a shard's file in bytes
  std::uint64_t first_number = 0;                     ///< number of the first shard
};

namespace detail {

/// The totals that close() returns.
struct written_shards {
  std::uint64_t shards = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;   ///< total size of the files
};

/// Writes samples into numbered shards. Only tests replace `Files`.
template <class Files = posix_files>
class basic_shard_writer {
 public:
  /// Checks the options. Throws setup_error if a limit is 0 or the pattern does not contain exactly one number.
  explicit basic_shard_writer(shard_writer_options options, Files files = {});

  /// Writes one sample. Throws setup_error for an invalid key or field, and for a closed or failed writer. Throws
  /// io_error if the file cannot be written.
  void write(std::string_view key, std::span<const named_bytes> fields);
  /// Overload for a braced list of fields.
  void write(std::string_view key, std::initializer_list<named_bytes> fields);

  /// Completes the last shard. Returns the totals over all shards. A second call returns the same totals. Throws
  /// setup_error if the writer has failed.
  written_shards close();

  /// Returns the path of the shard with this number, even if the shard is not written.
  std::string path_of(std::uint64_t number) const;

 private:
  void begin_shard(const std::string& path);
  bool of_pattern(std::string_view path) const;

  void append_sample();

  void finish_shard();

  void check_key(std::string_view key) const;

  void sort_fields(std::string_view key, std::span<const named_bytes> fields);

  static bool has_control_character(std::string_view name) noexcept;

  /// Parses %d without printf, which must never receive a user's format string.
  void parse_pattern();
  [[noreturn]] void refuse_pattern() const;

  shard_writer_options options_;
  Files files_;
  std::string before_number_, after_number_;
  std::size_t number_digits_ = 0;
  owner<atomic_file<Files>> file_;
  std::vector<named_bytes> sorted_;
  std::vector<std::size_t> header_ends_;
  std::string headers_, name_, last_key_;
  std::optional<std::string> cleaned_;   // the folder whose temporary files were removed last
  std::uint64_t samples_in_shard_ = 0;
  written_shards written_;
  bool broken_ = false;
  bool closed_ = false;
};

}   // namespace detail

/// The writer of shards.
using shard_writer = detail::basic_shard_writer<>;

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/write/impl/shard_writer.inl>
#endif
