// Definitions for jpeg_entries.hpp.
#pragma once

#include <millrace/image/jpeg/jpeg_entries.hpp>

#include <millrace/image/jpeg/baseline/entry_walk.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg,
                                                    const jpeg_entries_options& options, scratch& s) {
  return s.get<detail::entry_walk>().run(jpeg, {.every_mcus = options.every_mcus});
}

MILLRACE_INLINE std::vector<std::byte> jpeg_entries(std::span<const std::byte> jpeg,
                                                    const jpeg_entries_options& options) {
  scratch own;
  return jpeg_entries(jpeg, options, own);
}

}}   // namespace millrace
