// Several crops of one image as one column, each with different colors.
//
//   struct example { crops<2> globals; crops<6> locals; };          // columns [B, 2, H, W, 3] and [B, 6, h, w, 3] u8
//   e.globals.pictures.push_back(image.random_resized_crop(32, rng));
//   e.globals.colors.emplace_back().random_grayscale(rng, 0.5);     // one for each crop; may stay empty
//
// A column can be of any type with shape() and render(). Threads: a value. Errors: those of the images.
#pragma once

#include <millrace/pictures.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Crops of one image, consecutive in their row.
template <std::size_t Count>
struct crops {
  using element = std::uint8_t;
  std::vector<millrace::picture> pictures{};
  std::vector<millrace::photometric_plan> colors{};

  std::array<std::size_t, 4> shape() const { return {Count, pictures[0].height(), pictures[0].width(), 3}; }
  void render(std::span<std::uint8_t> row, millrace::scratch& s) const {
    for (std::size_t i = 0; i < Count; ++i) {
      const auto crop = row.subspan(i * row.size() / Count, row.size() / Count);
      pictures[i].render(crop, s);
      colors[i].run(crop, pictures[i].width(), pictures[i].height(), s);
    }
  }
};
