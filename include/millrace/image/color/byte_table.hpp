// Operations on single bytes of an image, as tables of 256 entries.
//
//   mr::detail::byte_table table = mr::detail::solarize_table(128);
//   table = mr::detail::composed(table, mr::detail::blend_table(0, 1.2F));   // solarize, then brighten: one table
//   const std::uint8_t result = table[200];
//
// Entry i is Pillow's result for the byte i, including all of Pillow's intermediate roundings.
// Errors: none. Threads: pure functions; any thread. Source: ImageEnhance, ImageOps and blend in Pillow's reference.
#pragma once

#include <millrace/image/color/unfused.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

using byte_table = std::array<std::uint8_t, 256>;
using byte_counts = std::array<std::uint32_t, 256>;   ///< a channel's histogram

/// Returns background + factor * (value - background), truncated and clamped. Rounds the product and the sum to float,
/// as Pillow does. The product is computed in double, so that the compiler cannot fuse the product with the sum.
inline std::uint8_t blended(int background, int value, float factor) noexcept {
  const auto product = static_cast<float>(double{factor} * (value - background));
  const float sum = static_cast<float>(background) + product;
  const float at_least = sum > 0 ? sum : 0;   // two selections without branches
  return static_cast<std::uint8_t>(at_least < 255 ? at_least : 255);
}

template <class Entry>
byte_table table_of(const Entry& entry) noexcept {
  byte_table table;
  for (int value = 0; value < 256; ++value)
    table[static_cast<std::size_t>(value)] = static_cast<std::uint8_t>(entry(value));
  return table;
}

inline byte_table identity_table() noexcept {
  return table_of([](int value) { return value; });
}

/// Returns the table that applies `first` and then `second`.
inline byte_table composed(const byte_table& first, const byte_table& second) noexcept {
  return table_of([&](int value) { return second[first[static_cast<std::size_t>(value)]]; });
}

/// Changes the brightness if `background` is 0, and the contrast if `background` is the mean gray value.
inline byte_table blend_table(int background, float factor) noexcept {
  return table_of([&](int value) { return blended(background, value, factor); });
}

inline byte_table invert_table() noexcept {
  return table_of([](int value) { return 255 - value; });
}

/// Retains the highest `bits` bits of each value. `bits` is 0 to 8.
inline byte_table posterize_table(int bits) noexcept {
  return table_of([&](int value) { return value & ~((1 << (8 - bits)) - 1); });
}

/// Inverts values at or above the threshold. The threshold need not be an integer.
inline byte_table solarize_table(double threshold) noexcept {
  return table_of([&](int value) { return value < threshold ? value : 255 - value; });
}

/// Adds `amount`, 0 to 255, to values below 128.
inline byte_table solarize_add_table(int amount) noexcept {
  return table_of([&](int value) { return value >= 128 ? value : value + amount > 255 ? 255 : value + amount; });
}

/// Maps `low` to 0, `high` to 255, and the values between them linearly.
inline byte_table autocontrast_table(int low, int high) noexcept {
  if (high <= low) return identity_table();
  const double scale = 255.0 / (high - low), offset = unfused(-low * scale);
  return table_of([&](int value) {
    const int level = static_cast<int>(unfused(value * scale) + offset);
    return level < 0 ? 0 : level > 255 ? 255 : level;
  });
}

/// Returns the table that equalizes the histogram `counts`.
inline byte_table equalize_table(const byte_counts& counts) noexcept {
  std::uint64_t total = 0, highest = 0;   // highest: count of the largest value in the image
  for (const std::uint32_t count : counts) {
    total += count;
    if (count > 0) highest = count;
  }
  const std::uint64_t step = (total - highest) / 255;
  if (step == 0) return identity_table();
  std::uint64_t below = step / 2;
  return table_of([&](int value) {
    const std::uint64_t rank = below / step;
    below += counts[static_cast<std::size_t>(value)];
    return rank > 255 ? std::uint64_t{255} : rank;
  });
}

/// Returns the histogram of the bytes after the table is applied to each byte.
inline byte_counts histogram_after(const byte_counts& counts, const byte_table& table) noexcept {
  byte_counts mapped{};
  for (std::size_t value = 0; value < 256; ++value) mapped[table[value]] += counts[value];
  return mapped;
}

/// The tables of the three channels, which basic_photometric_runner applies to the pixels later.
class pending_byte_tables {
 public:
  bool empty() const noexcept { return empty_; }
  /// Returns whether the three channels have the same table.
  bool equal() const noexcept { return equal_; }
  const byte_table& operator[](std::size_t channel) const noexcept { return table_[equal_ ? 0 : channel]; }

  void then(const byte_table& all) noexcept {
    for (std::size_t c = 0; c < (equal_ ? 1 : 3); ++c) table_[c] = empty_ ? all : composed(table_[c], all);
    empty_ = false;
  }
  void then(const byte_table& red, const byte_table& green, const byte_table& blue) noexcept {
    const std::array<byte_table, 3> each = {composed((*this)[0], red), composed((*this)[1], green),
                                            composed((*this)[2], blue)};
    table_ = each;
    empty_ = equal_ = false;
  }
  void clear() noexcept {
    table_[0] = identity_table();
    empty_ = equal_ = true;
  }

 private:
  std::array<byte_table, 3> table_ = {identity_table(), identity_table(), identity_table()};
  bool empty_ = true, equal_ = true;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>
