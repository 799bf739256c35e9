// Definitions for picture_statistics.hpp.
#pragma once

#include <millrace/report/verdict/picture_statistics.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE bool picture_statistics::add(const event_count& c) {
  const detail::event_name name = detail::event_of_text(c.what);
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

MILLRACE_INLINE std::uint64_t* picture_statistics::sum_of(detail::event_name name) noexcept {
  using detail::event_name;
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

MILLRACE_INLINE std::uint64_t picture_statistics::libjpeg() const noexcept {
  std::uint64_t sum = 0;
  for (const reason& r : by_libjpeg) sum += r.pictures;
  return sum;
}

MILLRACE_INLINE double picture_statistics::share(std::uint64_t of_them) const noexcept {
  return pictures() > 0 ? static_cast<double>(of_them) / static_cast<double>(pictures()) : 0;
}

MILLRACE_INLINE double picture_statistics::bytes_per_pixel() const noexcept {
  return pixels > 0 ? static_cast<double>(bytes) / static_cast<double>(pixels) : 0;
}

}}   // namespace millrace
