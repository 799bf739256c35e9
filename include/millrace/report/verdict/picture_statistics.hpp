// Counts the JPEGs of a run by decoder and by kind of file.
//
//   mr::picture_statistics p;
//   for (const mr::event_count& c : run.stats().counts) p.add(c);
//   std::printf("%.1f %% left to libjpeg, %.2f bytes per pixel\n", 100 * p.share(p.libjpeg()), p.bytes_per_pixel());
//
// Counts all images that were rendered since the start of the run, including images in batches that have not been
// delivered yet. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Counts of the JPEGs of a run, by decoder and by kind of file.
struct picture_statistics {
  /// A reason why libjpeg decoded images, with the number of images.
  struct reason {
    std::string why{};
    std::uint64_t pictures = 0;
  };

  std::uint64_t own_together = 0, own_alone = 0;   ///< by the built-in decoder: several at once, or one alone
  std::vector<reason> by_libjpeg{};                ///< reasons, in descending order of frequency
  std::uint64_t smaller = 0;                       ///< decoded at 1/8, 2/8 or 4/8 of the size, by any decoder
  std::uint64_t progressive = 0;
  std::uint64_t by_entries = 0, by_restarts = 0;   ///< crops that used stored entry points, or restart markers, to skip
                                                   ///< data
  std::uint64_t entries_refused = 0;               ///< entry points not used, because they belong to another file
  std::uint64_t damaged = 0;                       ///< damaged images that accept_damaged permits
  std::uint64_t warnings = 0;                      ///< all warnings of libjpeg
  std::uint64_t bytes = 0, pixels = 0;             ///< total size of the files, and of the images as stored

  /// Adds an event count of JPEGs. Does nothing and returns false for any other event.
  bool add(const event_count& c);

  /// Returns the number of images that libjpeg decoded.
  std::uint64_t libjpeg() const noexcept;
  /// Returns the number of all images.
  std::uint64_t pictures() const noexcept { return own_together + own_alone + libjpeg(); }
  /// Returns of_them / pictures(), the share of all images (0..1); 0 if no image was counted.
  double share(std::uint64_t of_them) const noexcept;
  /// Returns the mean bytes per pixel of the files.
  double bytes_per_pixel() const noexcept;

 private:
  /// Returns the member that counts the event; null for an event that no member counts.
  std::uint64_t* sum_of(detail::event_name name) noexcept;
};

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/picture_statistics.inl>
#endif
