// Defines what ragged_picture.hpp declares.
#pragma once

#include <millrace/image/picture/ragged_picture.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::string ragged_picture_options::describe() const {
  std::string text = "max " + std::to_string(max.width) + " x " + std::to_string(max.height) + ", multiple_of " +
                     std::to_string(multiple_of) + ", color";
  for (const std::uint8_t value : color) (text += ' ') += std::to_string(value);
  return text;
}

MILLRACE_INLINE std::array<std::size_t, 2> ragged_picture_options::padded(
    const std::array<std::size_t, 2>& largest) const noexcept {
  const auto up = [this](std::size_t side, std::size_t most) {
    return std::min(most, (side + multiple_of - 1) / multiple_of * multiple_of);
  };
  return {up(largest[0], max.height), up(largest[1], max.width)};
}

MILLRACE_INLINE void ragged_picture_options::fill(std::span<std::uint8_t> pixels) const noexcept {
  if (color[0] == color[1] && color[1] == color[2]) {
    std::fill(pixels.begin(), pixels.end(), color[0]);
    return;
  }
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = color[i % 3];
}

MILLRACE_INLINE padding_options ragged_picture::checked(const ragged_picture_options& o) {
  constexpr std::size_t most = 65'535;
  if (o.max.width < 1 || o.max.height < 1 || o.max.width > most || o.max.height > most || o.multiple_of < 1 ||
      o.multiple_of > most)
    throw setup_error("a ragged picture has " + o.describe() + " (expected: numbers from 1 to " + std::to_string(most) +
                          ")",
                      "Set ragged_picture_options::max to the size that no picture exceeds");
  return {.to = o.max, .color = o.color};
}

MILLRACE_INLINE ragged_picture::ragged_picture(picture plan, const ragged_picture_options& options)
    : options_(options), padded_(std::move(plan), checked(options)) {}

}}  // namespace millrace
