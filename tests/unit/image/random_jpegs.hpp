// Random JPEG files that the built-in decoder supports, and damage to them.
#pragma once

#include "slow_planes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
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

// Random requests to the built-in decoder, with bytes in separate memory.

/// A request for bytes in a block of exactly their size, so that AddressSanitizer detects any read beyond it.
struct exact_request {
  std::unique_ptr<std::byte[]> memory;
  mr::detail::jpeg_planes_request request;

  exact_request(std::span<const std::byte> file, mr::detail::jpeg_planes_request a)
      : memory(new std::byte[file.size()]), request(a) {
    if (!file.empty()) std::memcpy(memory.get(), file.data(), file.size());
    request.bytes = {memory.get(), file.size()};
  }
};

inline mr::detail::jpeg_planes_request random_region(mr::rng& d, std::size_t width, std::size_t height) {
  mr::detail::jpeg_planes_request request;
  request.eighths = d.chance(0.5) ? 8 : 1 << d.below(3);
  if (d.chance(0.3)) return request;
  const auto scale = static_cast<std::size_t>(request.eighths);
  width = (width * scale + 7) / 8;
  height = (height * scale + 7) / 8;
  request.left = d.below(width);
  request.top = d.below(height);
  request.right = request.left + 1 + d.below(width - request.left);
  request.bottom = request.top + 1 + d.below(height - request.top);
  return request;
}
inline mr::detail::jpeg_planes_request random_region(mr::rng& d, const random_jpeg& f) {
  return random_region(d, f.width, f.height);
}

// Random progressive JPEG files that the built-in decoder supports: libjpeg's own scans, or any others that it can
// write.

/// Draws scans until all bits of all coefficients are sent.
class scan_script {
 public:
  scan_script(mr::rng& d, int components) : d_(d), components_(components) {
    for (auto& of_component : lowest_) of_component.fill(unsent);
  }

  std::vector<jpeg_scan_info> draw() {
    const double narrow = d_.chance(0.3) ? 0.4 : 0.05;
    while (true) {
      std::vector<int> left;
      for (int c = 0; c < components_; ++c)
        if (std::any_of(of(c).begin(), of(c).end(), [](int low) { return low != 0; })) left.push_back(c);
      if (left.empty()) return scans_;
      const int c = left[d_.below(left.size())];
      if (of(c)[0] == unsent || (of(c)[0] > 0 && d_.chance(0.3))) add_dc(c);
      else add_band(c, narrow);
    }
  }

 private:
  static constexpr int unsent = -1;

  std::array<int, 64>& of(int c) { return lowest_[static_cast<std::size_t>(c)]; }

  int next_lowest(int lowest) {
    if (lowest != unsent) return lowest - 1;
    return d_.chance(0.05) ? static_cast<int>(d_.below(10)) : static_cast<int>(d_.below(4));
  }

  /// Of one component, or of others together with it.
  void add_dc(int c) {
    jpeg_scan_info scan{};
    const int lowest = of(c)[0], next = next_lowest(lowest);
    const bool together = d_.chance(0.7);
    for (int k = 0; k < components_; ++k) {
      if (k != c && (!together || of(k)[0] != lowest || d_.chance(0.2))) continue;
      scan.component_index[scan.comps_in_scan++] = k;
      of(k)[0] = next;
    }
    scan.Ah = std::max(lowest, 0);
    scan.Al = next;
    scans_.push_back(scan);
  }

  /// Adjacent coefficients whose bits have been sent equally far.
  void add_band(int c, double narrow) {
    auto& lowest = of(c);
    std::vector<int> left;
    for (int k = 1; k < 64; ++k)
      if (lowest[static_cast<std::size_t>(k)] != 0) left.push_back(k);
    if (left.empty()) return add_dc(c);
    int first = left[d_.below(left.size())], last = first;
    const auto is_like = [&](int k) {
      return k > 0 && k < 64 && lowest[static_cast<std::size_t>(k)] == lowest[static_cast<std::size_t>(first)];
    };
    while (is_like(last + 1)) ++last;
    while (is_like(first - 1)) --first;
    if (d_.chance(narrow)) first += static_cast<int>(d_.below(static_cast<std::uint64_t>(last - first + 1)));
    if (d_.chance(narrow)) last -= static_cast<int>(d_.below(static_cast<std::uint64_t>(last - first + 1)));
    const int before = lowest[static_cast<std::size_t>(first)], next = next_lowest(before);
    for (int k = first; k <= last; ++k) lowest[static_cast<std::size_t>(k)] = next;
    jpeg_scan_info scan{.comps_in_scan = 1, .component_index = {c}, .Ss = first, .Se = last, .Ah = std::max(before, 0),
                        .Al = next};
    scans_.push_back(scan);
  }

  mr::rng& d_;
  int components_;
  std::array<std::array<int, 64>, 3> lowest_;
  std::vector<jpeg_scan_info> scans_;
};

/// As draw_file() does, with scans. Flat parts lead to long runs of blocks without a coefficient.
inline random_jpeg draw_progressive_file(mr::rng& d, std::size_t largest) {
  random_jpeg f;
  f.height = d.below(largest) + 1;
  f.width = d.below(largest) + 1;
  f.channels = d.chance(0.2) ? 1 : 3;
  f.recipe = {.quality = static_cast<int>(d.between(1, 100)), .horizontal = static_cast<int>(d.between(1, 2)),
              .vertical = static_cast<int>(d.between(1, 2)),
              .restart_interval = d.chance(0.6) ? 0U : static_cast<unsigned>(d.between(1, 40)), .progressive = true};
  if (d.chance(0.7)) f.recipe.scans = scan_script(d, static_cast<int>(f.channels)).draw();
  auto pixels = photo(f.height, f.width, f.channels, d.bits());
  const double kind = d.uniform();
  if (kind < 0.2)   // noise without bounds: long codes, all coefficients
    for (auto& sample : pixels.span())
      sample = static_cast<std::uint8_t>(d.chance(0.5) ? d.below(256) : 255 * d.below(2));
  else if (kind < 0.5)
    std::fill_n(pixels.span().data(), d.below(pixels.span().size() + 1), static_cast<std::uint8_t>(d.below(256)));
  f.bytes = make_file(pixels, f.recipe);
  return f;
}

inline std::string describe_scans(const random_jpeg& f) {
  std::string all = describe(f) + ", scans";
  for (const auto& scan : f.recipe.scans) {
    all += " [";
    for (int i = 0; i < scan.comps_in_scan; ++i) all += std::to_string(scan.component_index[i]);
    all += ' ' + std::to_string(scan.Ss) + '-' + std::to_string(scan.Se) + ' ' + std::to_string(scan.Ah) + '>' +
           std::to_string(scan.Al) + ']';
  }
  return all;
}

}  // namespace slow
