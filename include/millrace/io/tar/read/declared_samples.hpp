// Reads the number of samples from the sidecar files of a shard: a Millrace index, a DALI index or "sizes.json".
//
//   if (auto declared = mr::detail::declared_samples("train-000.tar"); declared.samples > count)
//     throw mr::detail::fewer_than_declared(declared, count, {.stage = "tar", .shard = "train-000.tar"});
//
// A shard without an end marker may be truncated. If a sidecar file states more samples than the shard has, the shard
// counts as truncated. The functions use the largest number in the sidecar files.
// Errors: none. An unreadable file is ignored. Threads: any thread.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/storage.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The largest number of samples in the sidecar files, and the file that contains this number.
struct sample_declaration {
  std::uint64_t samples = 0;   ///< 0 if no file contains a number
  std::string file{};
};

constexpr std::size_t index_samples_at = 96;   // byte offset of the number of samples in an index file (index_head)

/// Returns up to `max_bytes` from the front of a file, or "" if it cannot be read.
std::string front_of_file(const storage& at, const std::string& name, std::size_t max_bytes);

/// Skips blanks and colons from offset `at`, and returns the number that follows. Returns 0 if no number follows.
std::uint64_t number_at(std::string_view text, std::size_t at) noexcept;

/// Returns the largest number of samples in the sidecar files of `shard`.
sample_declaration declared_samples(const std::string& shard, const storage& at = {});

/// Returns the error for a shard that has no end marker, and fewer samples than `declared`.
data_error fewer_than_declared(const sample_declaration& declared, std::uint64_t count, error_location where);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/declared_samples.inl>
#endif
