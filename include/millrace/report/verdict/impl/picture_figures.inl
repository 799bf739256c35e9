// Defines what picture_figures.hpp declares.
#pragma once

#include <millrace/report/verdict/picture_figures.hpp>

#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool picture_figures::add(const event_count& c) {
  namespace names = detail::event_names;
  const std::string_view what = c.what;
  const std::pair<const char*, std::uint64_t*> known[] = {
      {names::own_together, &own_together}, {names::own_alone, &own_alone}, {names::smaller, &smaller},
      {names::progressive, &progressive},   {names::damaged, &damaged},     {names::warnings, &warnings},
      {names::bytes, &bytes},               {names::pixels, &pixels},     {names::by_entries, &by_entries},
      {names::by_restarts, &by_restarts},   {names::entries_refused, &entries_refused}};
  for (const auto& [name, sum] : known)
    if (what == name) {
      *sum += c.times;
      return true;
    }
  if (!what.starts_with(names::by_libjpeg)) return false;
  by_libjpeg.push_back({std::string(what.substr(std::string_view(names::by_libjpeg).size())), c.times});
  std::stable_sort(by_libjpeg.begin(), by_libjpeg.end(),
                   [](const reason& a, const reason& b) { return a.pictures > b.pictures; });
  return true;
}

MILLRACE_INLINE std::uint64_t picture_figures::libjpeg() const noexcept {
  std::uint64_t sum = 0;
  for (const reason& r : by_libjpeg) sum += r.pictures;
  return sum;
}

MILLRACE_INLINE double picture_figures::share(std::uint64_t of_them) const noexcept {
  return pictures() > 0 ? static_cast<double>(of_them) / static_cast<double>(pictures()) : 0;
}

MILLRACE_INLINE double picture_figures::bytes_per_pixel() const noexcept {
  return pixels > 0 ? static_cast<double>(bytes) / static_cast<double>(pixels) : 0;
}

}}}  // namespace millrace::detail
