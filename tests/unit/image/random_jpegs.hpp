// Random JPEG files that the built-in decoder supports, and damage to them.
#pragma once

#include "slow_planes.hpp"

#include <cstdlib>
#include <string>
#include <vector>

namespace slow {

struct random_jpeg {
  file_recipe recipe;
  std::size_t height = 0, width = 0, channels = 3;
  std::vector<std::byte> bytes;
};

inline random_jpeg draw_file(mr::rng& d, std::size_t largest) {
  random_jpeg f;
  f.height = d.below(largest) + 1;
  f.width = d.below(largest) + 1;
  f.channels = d.chance(0.2) ? 1 : 3;
  f.recipe = {.quality = static_cast<int>(d.between(1, 100)), .horizontal = static_cast<int>(d.between(1, 2)),
              .vertical = static_cast<int>(d.between(1, 2)),
              .restart_interval = d.chance(0.5) ? 0U : static_cast<unsigned>(d.between(1, 40)),
              .optimize_tables = d.chance(0.5)};
  auto pixels = photo(f.height, f.width, f.channels, d.bits());
  if (d.chance(0.2))   // noise without bounds: long codes, all coefficients
    for (auto& sample : pixels.span())
      sample = static_cast<std::uint8_t>(d.chance(0.5) ? d.below(256) : 255 * d.below(2));
  f.bytes = make_file(pixels, f.recipe);
  return f;
}

/// The number of images in the long tests; a nightly run sets a larger one.
inline std::size_t count_of(const char* variable, std::size_t usual) {
  const char* text = std::getenv(variable);
  return text ? static_cast<std::size_t>(std::strtoull(text, nullptr, 10)) : usual;
}
inline std::uint64_t seed_of_run() { return count_of("MILLRACE_TEST_SEED", 1); }

inline std::string describe(const random_jpeg& f) {
  return std::to_string(f.width) + " x " + std::to_string(f.height) + " x " + std::to_string(f.channels) +
         ", quality " + std::to_string(f.recipe.quality) + ", luma " + std::to_string(f.recipe.horizontal) + "x" +
         std::to_string(f.recipe.vertical) + ", restart " + std::to_string(f.recipe.restart_interval) +
         (f.recipe.optimize_tables ? ", own tables" : "");
}

/// Bits flipped, a cut, a splice, bytes inserted or removed, or nothing but noise.
inline std::vector<std::byte> damaged(std::vector<std::byte> file, mr::rng& d) {
  const auto at = [&] { return static_cast<std::ptrdiff_t>(d.below(file.size())); };
  const auto noise = [&] { return static_cast<std::byte>(d.chance(0.3) ? 0xff : d.below(256)); };
  switch (d.below(6)) {
    case 0:
      file.resize(d.below(file.size()) + 1);
      break;
    case 1:
      file.insert(file.begin() + at(), noise());
      break;
    case 2: {
      const auto from = at(), length = std::min<std::ptrdiff_t>(at(), 20);
      file.erase(file.begin() + from, file.begin() + std::min<std::ptrdiff_t>(from + length, std::ssize(file) - 1));
      break;
    }
    case 3: {
      const std::vector<std::byte> piece(file.begin() + at() / 2, file.end());
      const auto to = at();
      for (std::size_t i = 0; i < std::min<std::size_t>(piece.size(), 64); ++i)
        if (to + static_cast<std::ptrdiff_t>(i) < std::ssize(file)) file[static_cast<std::size_t>(to) + i] = piece[i];
      break;
    }
    case 4:
      if (d.chance(0.1))
        for (auto& byte : file) byte = noise();
      [[fallthrough]];
    default:
      for (std::uint64_t k = d.below(4) + 1; k > 0; --k)
        file[d.below(file.size())] ^= static_cast<std::byte>(1U << d.below(8));
  }
  return file;
}

}  // namespace slow
