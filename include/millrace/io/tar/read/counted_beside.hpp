// The number of samples that a file beside a shard states: a Millrace index, a DALI index or "sizes.json".
//
//   if (auto told = mr::detail::counted_beside("train-000.tar"); told.samples > found)
//     throw mr::detail::fewer_than_counted(told, found, {.stage = "tar", .shard = "train-000.tar"});
//
// A shard without an end marker may be cut, and nothing inside it can tell. These files can. Only the numbers are read,
// without any checks: sidecar_counts.hpp and index_file.hpp read the same files with care. The largest number wins.
// Errors: none; a file that cannot be read is ignored. Threads: any; nothing is shared.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/storage.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The largest number of samples, and the file that states it.
struct samples_told {
  std::uint64_t samples = 0;   ///< 0: no file states a number
  std::string file{};
};

constexpr std::size_t index_samples_at = 96;   // byte offset in an index file, see index_head

/// Returns the first bytes of a file, `max_bytes` at most; empty if it cannot be read.
std::string front_of_file(const storage& at, const std::string& name, std::size_t max_bytes);

/// Returns the number at `at`, after blanks and a colon; 0 if there is none.
std::uint64_t number_at(std::string_view text, std::size_t at) noexcept;

/// Looks at the files beside `shard`. Returns the largest number of samples that one of them states.
samples_told counted_beside(const std::string& shard, const storage& at = {});

/// Returns the error for a shard without an end marker that has fewer samples than `told` states.
data_error fewer_than_counted(const samples_told& told, std::uint64_t found, error_location where);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/io/tar/read/impl/counted_beside.inl>
#endif
