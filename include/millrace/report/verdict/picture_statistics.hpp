// The decoders of a run's JPEGs, and the kinds of these files.
//
//   mr::picture_statistics p;
//   for (const mr::event_count& c : run.stats().counts) p.add(c);
//   std::printf("%.1f %% left to libjpeg, %.2f bytes per pixel\n", 100 * p.share(p.libjpeg()), p.bytes_per_pixel());
//
// Counts all images that were rendered since the start of the run: workers are ahead of the delivered batches.
// Errors: none. Threads: a value.
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
  /// A reason why libjpeg decoded images.
  struct reason {
    std::string why{};
    std::uint64_t pictures = 0;
  };

  std::uint64_t own_together = 0, own_alone = 0;   ///< built-in decoder: several at once, or one alone
  std::vector<reason> by_libjpeg{};                ///< reasons, the most frequent first
  std::uint64_t smaller = 0;                       ///< decoded at 1/8, 2/8 or 4/8 of their size, by any decoder
  std::uint64_t progressive = 0;
  std::uint64_t by_entries = 0, by_restarts = 0;   ///< crops that entry points, or restart markers, accelerated
  std::uint64_t entries_refused = 0;               ///< entry points of another file, which were not used
  std::uint64_t damaged = 0;                       ///< damaged, and accepted because of accept_damaged
  std::uint64_t warnings = 0;                      ///< warnings of libjpeg, of any kind
  std::uint64_t bytes = 0, pixels = 0;             ///< size of the files and of their images, as stored

  /// Adds an event count of JPEGs. Returns false for any other event, without effect.
  bool add(const event_count& c);

  /// Returns the number of images that libjpeg decoded.
  std::uint64_t libjpeg() const noexcept;
  /// Returns the number of all images.
  std::uint64_t pictures() const noexcept { return own_together + own_alone + libjpeg(); }
  /// Returns the share (0..1) of all images; 0 if there are none.
  double share(std::uint64_t of_them) const noexcept;
  /// Returns the bytes per pixel of the files, which determine the cost of entropy decoding.
  double bytes_per_pixel() const noexcept;

 private:
  /// Returns the member that counts the event; null for others.
  std::uint64_t* sum_of(detail::event_name name) noexcept;
};

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/report/verdict/impl/picture_statistics.inl>
#endif
