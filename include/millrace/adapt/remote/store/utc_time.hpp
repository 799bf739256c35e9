// Converts between seconds since 1970 and the time formats of the storage protocols.
//
//   mr::detail::basic_utc(1'440'938'160);                          // "20150830T123600Z", the format of signatures
//   mr::detail::utc_seconds("2015-08-30T12:36:00Z");               // 1440938160, the format of credentials
//   mr::detail::http_date_seconds("Sun, 30 Aug 2015 12:36:00 GMT");
//
// Errors: none. If the text has another format, the functions return nothing. Threads: pure functions; any thread.
// Sources: ISO 8601; RFC 9110, section 5.6.7; Howard Hinnant's days_from_civil for the calendar.
#pragma once

#include <millrace/base/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A calendar date and a time of day, in UTC.
struct utc_fields {
  std::int64_t year = 1970;
  unsigned month = 1, day = 1, hour = 0, minute = 0, second = 0;

  std::int64_t seconds() const noexcept;
  static utc_fields of(std::int64_t seconds) noexcept;

  bool in_range() const noexcept {
    return month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour <= 23 && minute <= 59 && second <= 60;
  }
};

std::string basic_utc(std::int64_t seconds);
/// Parses a time such as 2015-08-30T12:36:00Z or 20150830T123600Z. Seconds may have a fraction. An offset such as
/// +01:00 may replace the Z.
std::optional<std::int64_t> utc_seconds(std::string_view text);
/// Parses the format of HTTP headers, such as Sun, 30 Aug 2015 12:36:00 GMT.
std::optional<std::int64_t> http_date_seconds(std::string_view text);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/utc_time.inl>
#endif
