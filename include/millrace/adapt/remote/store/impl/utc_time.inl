// Definitions for utc_time.hpp.
#pragma once

#include <millrace/adapt/remote/store/utc_time.hpp>

#include <array>
#include <cstddef>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::int64_t utc_fields::seconds() const noexcept {
  const std::int64_t y = year - (month <= 2 ? 1 : 0), era = (y >= 0 ? y : y - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(y - era * 400);
  const unsigned day_of_year = (153 * (month + (month > 2 ? -3U : 9U)) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return (era * 146'097 + static_cast<std::int64_t>(day_of_era) - 719'468) * 86'400 + hour * 3'600 + minute * 60 +
         second;
}

MILLRACE_INLINE utc_fields utc_fields::of(std::int64_t seconds) noexcept {
  const std::int64_t days = (seconds >= 0 ? seconds : seconds - 86'399) / 86'400;
  const auto rest = static_cast<unsigned>(seconds - days * 86'400);
  const std::int64_t z = days + 719'468, era = (z >= 0 ? z : z - 146'096) / 146'097;
  const auto day_of_era = static_cast<unsigned>(z - era * 146'097);
  const unsigned year_of_era = (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * day_of_year + 2) / 153, month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {.year = static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * shifted + 2) / 5 + 1,
          .hour = rest / 3'600,
          .minute = rest / 60 % 60,
          .second = rest % 60};
}

MILLRACE_INLINE std::string basic_utc(std::int64_t seconds) {
  const utc_fields f = utc_fields::of(seconds);
  std::string text;
  const auto put = [&](std::uint64_t value, std::size_t digits) {
    std::string number(digits, '0');
    for (std::size_t i = digits; i-- > 0; value /= 10) number[i] = static_cast<char>('0' + value % 10);
    text += number;
  };
  put(static_cast<std::uint64_t>(f.year), 4);
  put(f.month, 2);
  put(f.day, 2);
  text += 'T';
  put(f.hour, 2);
  put(f.minute, 2);
  put(f.second, 2);
  return text += 'Z';
}

/// Reads digits and fixed characters from the beginning of a text.
class date_reader {
 public:
  explicit date_reader(std::string_view text) : text_(text) {}

  template <class Number>
  date_reader& number(Number& value, std::size_t digits) {
    value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_.empty() || text_[0] < '0' || text_[0] > '9') {
        good_ = false;
        return *this;
      }
      value = value * 10 + static_cast<Number>(text_[0] - '0');
      text_.remove_prefix(1);
    }
    return *this;
  }
  date_reader& fixed(std::string_view expected) {
    good_ = good_ && text_.starts_with(expected);
    if (good_) text_.remove_prefix(expected.size());
    return *this;
  }
  std::string_view take(std::size_t count) {
    good_ = good_ && text_.size() >= count;
    const std::string_view prefix = good_ ? text_.substr(0, count) : std::string_view();
    if (good_) text_.remove_prefix(count);
    return prefix;
  }
  std::string_view rest() const noexcept { return text_; }
  bool good() const noexcept { return good_; }

 private:
  std::string_view text_;
  bool good_ = true;
};

MILLRACE_INLINE std::optional<std::int64_t> utc_seconds(std::string_view text) {
  utc_fields f;
  date_reader in(text);
  const bool extended = text.size() > 4 && text[4] == '-';
  const std::string_view dash = extended ? "-" : "", colon = extended ? ":" : "";
  in.number(f.year, 4).fixed(dash).number(f.month, 2).fixed(dash).number(f.day, 2).fixed("T");
  in.number(f.hour, 2).fixed(colon).number(f.minute, 2).fixed(colon).number(f.second, 2);
  if (!in.good() || !f.in_range()) return std::nullopt;
  std::string_view zone = in.rest();
  if (zone.starts_with('.')) {
    const std::size_t end = zone.find_first_not_of("0123456789", 1);
    if (end == 1 || end == std::string_view::npos) return std::nullopt;
    zone.remove_prefix(end);
  }
  if (zone == "Z") return f.seconds();
  if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  std::int64_t hours = 0, minutes = 0;
  date_reader offset(zone.substr(1));
  offset.number(hours, 2).fixed(":").number(minutes, 2);
  if (!offset.good() || hours > 23 || minutes > 59) return std::nullopt;
  const std::int64_t ahead = hours * 3'600 + minutes * 60;
  return f.seconds() - (zone[0] == '+' ? ahead : -ahead);
}

MILLRACE_INLINE std::optional<std::int64_t> http_date_seconds(std::string_view text) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  utc_fields f;
  date_reader in(text);
  in.take(3);
  in.fixed(", ").number(f.day, 2).fixed(" ");
  const std::string_view name = in.take(3);
  in.fixed(" ").number(f.year, 4).fixed(" ");
  in.number(f.hour, 2).fixed(":").number(f.minute, 2).fixed(":").number(f.second, 2).fixed(" GMT");
  f.month = 0;
  for (unsigned i = 0; i < months.size(); ++i)
    if (months[i] == name) f.month = i + 1;
  if (!in.good() || !in.rest().empty() || !f.in_range()) return std::nullopt;
  return f.seconds();
}

}}}   // namespace millrace::detail
