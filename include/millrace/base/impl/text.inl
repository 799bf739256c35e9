// Definitions for text.hpp.
#pragma once

#include <millrace/base/text.hpp>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE void sort_texts(std::vector<std::string>& names, std::size_t first) {
  std::vector<std::string*> order;
  for (std::size_t i = first; i < names.size(); ++i) order.push_back(&names[i]);
  if (order.empty()) return;
  std::qsort(order.data(), order.size(), sizeof order[0], [](const void* a, const void* b) {
    return (*static_cast<std::string* const*>(a))->compare(**static_cast<std::string* const*>(b));
  });
  std::vector<std::string> sorted(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) sorted[i].swap(*order[i]);
  for (std::size_t i = 0; i < order.size(); ++i) names[first + i].swap(sorted[i]);
}

MILLRACE_INLINE std::size_t utf8_prefix_bytes(std::string_view text) noexcept {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080;
  const char* const data = text.data();
  const std::size_t size = text.size();
  const auto word_at = [data](std::size_t at) {
    std::uint64_t word;
    std::memcpy(&word, data + at, sizeof word);
    return word;
  };
  for (std::size_t at = 0;;) {
    while (size - at >= 32 && ((word_at(at) | word_at(at + 8) | word_at(at + 16) | word_at(at + 24)) & high_bits) == 0)
      at += 32;
    while (size - at >= 8) {
      const std::uint64_t beyond_ascii = word_at(at) & high_bits;
      at += beyond_ascii == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(beyond_ascii)) / 8;
      if (beyond_ascii != 0) break;
    }
    while (at < size && size - at < 8 && static_cast<unsigned char>(data[at]) < 0x80) ++at;
    if (at == size) return size;
    do {
      std::uint32_t word = 0;
      if (size - at >= sizeof word) std::memcpy(&word, data + at, sizeof word);
      else std::memcpy(&word, data + at, size - at);
      const std::size_t bytes = utf8_sequence_bytes(word);
      if (bytes == 0) return at;
      at += bytes;
    } while (at < size && static_cast<unsigned char>(data[at]) >= 0x80);
  }
}

MILLRACE_RARE void clean_utf8(std::string& text) {
  std::size_t good = utf8_prefix_bytes(text);
  if (good == text.size()) return;
  std::string clean;
  for (std::string_view rest = text;; good = utf8_prefix_bytes(rest)) {
    clean += rest.substr(0, good);
    if (good == rest.size()) break;
    clean += "\xef\xbf\xbd";
    rest.remove_prefix(good + 1);
  }
  text = std::move(clean);
}

MILLRACE_INLINE std::optional<std::uint64_t> decimal_number(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}}}   // namespace millrace::detail
