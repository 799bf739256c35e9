// Which decoder took a run's JPEGs, and what kind of files they were.
//
//   mr::detail::picture_figures p;
//   for (const mr::detail::event_count& c : run.stats().counts) p.add(c);
//   std::printf("%.1f %% left to libjpeg, %.2f bytes per pixel\n", 100 * p.share(p.libjpeg()), p.bytes_per_pixel());
//
// Counts all that was rendered since the start of the run: workers are ahead of what was delivered.
// Errors: none. Threads: a value.
#pragma once

#include <millrace/measure/values/event_counts.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Counts of the JPEGs of a run, by decoder and by kind of file.
struct picture_figures {
  /// A reason why libjpeg decoded pictures.
  struct reason {
    std::string why{};
    std::uint64_t pictures = 0;
  };

  std::uint64_t own_together = 0, own_alone = 0;   ///< built-in decoder: several at once, or one alone
  std::vector<reason> by_libjpeg{};                ///< reasons, the most frequent first
  std::uint64_t smaller = 0;                       ///< decoded at 1/8, 2/8 or 4/8 of their size, by any decoder
  std::uint64_t progressive = 0;
  std::uint64_t by_entries = 0, by_restarts = 0;   ///< crops that entry points, or restart markers, made cheaper
  std::uint64_t entries_refused = 0;               ///< entry points of another file, which were not used
  std::uint64_t damaged = 0;                       ///< damaged, and accepted because of accept_damaged
  std::uint64_t warnings = 0;                      ///< warnings of libjpeg, of any kind
  std::uint64_t bytes = 0, pixels = 0;             ///< size of the files and of their pictures, as stored

  /// Adds an event count if it is about JPEGs. Returns false for any other, which changes nothing.
  bool add(const event_count& c) {
    const event_name name = c.name();
    if (const char* const why = libjpeg_reason(name)) {
      by_libjpeg.push_back({why, c.times});
      std::stable_sort(by_libjpeg.begin(), by_libjpeg.end(),
                       [](const reason& a, const reason& b) { return a.pictures > b.pictures; });
      return true;
    }
    std::uint64_t* const sum = sum_of(name);
    if (sum) *sum += c.times;
    return sum != nullptr;
  }

  /// Returns the pictures that libjpeg decoded.
  std::uint64_t libjpeg() const noexcept {
    std::uint64_t sum = 0;
    for (const reason& r : by_libjpeg) sum += r.pictures;
    return sum;
  }
  /// Returns the number of all pictures.
  std::uint64_t pictures() const noexcept { return own_together + own_alone + libjpeg(); }
  /// Returns the share (0..1) of all pictures; 0 if there are none.
  double share(std::uint64_t of_them) const noexcept {
    return pictures() > 0 ? static_cast<double>(of_them) / static_cast<double>(pictures()) : 0;
  }
  /// Returns the bytes per pixel of the files: they decide how much entropy decoding costs.
  double bytes_per_pixel() const noexcept {
    return pixels > 0 ? static_cast<double>(bytes) / static_cast<double>(pixels) : 0;
  }

 private:
  /// Returns the member that counts the event; null for others.
  std::uint64_t* sum_of(event_name name) noexcept {
    switch (name) {
      case event_name::own_together: return &own_together;
      case event_name::own_alone: return &own_alone;
      case event_name::smaller: return &smaller;
      case event_name::by_entries: return &by_entries;
      case event_name::by_restarts: return &by_restarts;
      case event_name::entries_refused: return &entries_refused;
      case event_name::progressive: return &progressive;
      case event_name::damaged: return &damaged;
      case event_name::warnings: return &warnings;
      case event_name::bytes: return &bytes;
      case event_name::pixels: return &pixels;
      default: return nullptr;
    }
  }
};

}}}  // namespace millrace::detail
