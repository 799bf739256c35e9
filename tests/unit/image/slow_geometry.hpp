// Chains of crops, resizes and flips as positions, in fractions: the reference of the geometry tests.
#pragma once

#include <millrace/image/picture/picture.hpp>

#include "slow_pictures.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace slow {

__extension__ using wide = __int128;

/// A fraction in lowest terms, its denominator above 0.
struct fraction {
  wide over = 0, under = 1;

  static fraction of(wide over, wide under) {
    if (under < 0) over = -over, under = -under;
    wide a = over < 0 ? -over : over, b = under;
    while (b != 0) a = std::exchange(b, a % b);
    return a == 0 ? fraction{0, 1} : fraction{over / a, under / a};
  }
  friend fraction operator+(const fraction& a, const fraction& b) {
    return of(a.over * b.under + b.over * a.under, a.under * b.under);
  }
  friend fraction operator*(const fraction& a, const fraction& b) { return of(a.over * b.over, a.under * b.under); }
  friend bool operator<(const fraction& a, const fraction& b) { return a.over * b.under < b.over * a.under; }
  std::int64_t floor() const {
    return static_cast<std::int64_t>(over >= 0 ? over / under : -((-over + under - 1) / under));
  }
  double real() const { return static_cast<double>(over) / static_cast<double>(under); }
};

/// One axis as seen: output o covers [begin + o * step, begin + (o + 1) * step) of the source.
struct picture_axis {
  fraction begin{}, step{1, 1};
  std::int64_t count = 0;
  fraction image_begin{}, image_end{};   // padding is outside
  fraction least{}, most{};              // pixels that a resize may read
  std::pair<fraction, fraction> resized;   // the extent at the last resize

  explicit picture_axis(std::int64_t length)
      : count(length), image_end{length, 1}, most{length, 1}, resized{fraction{}, fraction{length, 1}} {}
  fraction end() const { return begin + fraction{count, 1} * step; }
  std::pair<fraction, fraction> extent() const {
    return step.over < 0 ? std::pair{end(), begin} : std::pair{begin, end()};
  }
  void crop(std::int64_t offset, std::int64_t size) {
    begin = begin + fraction{offset, 1} * step;
    count = size;
  }
  void resize(std::int64_t outputs) {
    limit();
    // Consecutive resizes are one resize from the source, with the limits of the first one.
    if (const auto now = extent(); now.first < resized.first || resized.first < now.first ||
                                   now.second < resized.second || resized.second < now.second) {
      if (least < image_begin) least = image_begin;
      if (image_end < most) most = image_end;
      resized = now;
    }
    step = step * fraction::of(count, outputs);
    count = outputs;
    // The outputs that show the image are its new extent.
    std::int64_t first = 0, last = count - 1;
    while (first < last && !shows(first)) ++first;
    while (first < last && !shows(last)) --last;
    if (visible_count() == 0) return;
    image_begin = begin + fraction{step.over < 0 ? last + 1 : first, 1} * step;
    image_end = begin + fraction{step.over < 0 ? first : last + 1, 1} * step;
  }
  /// The image ends at the edges of the visible part.
  void limit() {
    const auto [low, high] = extent();
    if (image_begin < low) image_begin = low;
    if (high < image_end) image_end = high;
  }
  void flip() {
    begin = begin + fraction{count, 1} * step;
    step = step * fraction{-1, 1};
  }
  /// Padding of a constant color; nothing before it remains visible beyond it.
  void pad(std::int64_t before, std::int64_t after) {
    limit();
    begin = begin + fraction{-before, 1} * step;
    count += before + after;
  }
  /// Whether the center of an output is in the image, not in its padding.
  bool shows(std::int64_t output) const {
    const fraction center = begin + fraction::of(2 * output + 1, 2) * step;
    return image_begin < center && center < image_end;
  }
  std::int64_t visible_count() const {
    std::int64_t total = 0;
    for (std::int64_t o = 0; o < count; ++o) total += shows(o) ? 1 : 0;
    return total;
  }
  /// The source pixel that contains the center of an output.
  std::int64_t nearest(std::int64_t output) const {
    return std::clamp((begin + fraction::of(2 * output + 1, 2) * step).floor(), least.floor(),
                      -(fraction{-1, 1} * most).floor() - 1);
  }
  /// The output position of an edge of the source.
  double edge(double source) const { return (source - begin.real()) / step.real(); }
};

/// Both axes of an image, of which the stored columns may be seen as rows.
struct picture_axes {
  picture_axis across, down;
  bool transposed = false;

  /// The rotation of the stored image by CIPA DC-008; 1: none.
  picture_axes(std::size_t stored_width, std::size_t stored_height, int orientation)
      : across(static_cast<std::int64_t>(stored_width)), down(static_cast<std::int64_t>(stored_height)),
        transposed(orientation >= 5) {
    if (transposed) std::swap(across, down);
    if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) across.flip();
    if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) down.flip();
  }

  bool shows(std::size_t y, std::size_t x) const {
    return down.shows(static_cast<std::int64_t>(y)) && across.shows(static_cast<std::int64_t>(x));
  }
  /// The row and column of the source pixel that is nearest to an output.
  std::pair<std::size_t, std::size_t> nearest(std::size_t y, std::size_t x) const {
    auto row = static_cast<std::size_t>(down.nearest(static_cast<std::int64_t>(y)));
    auto column = static_cast<std::size_t>(across.nearest(static_cast<std::int64_t>(x)));
    if (transposed) std::swap(row, column);
    return {row, column};
  }
};

/// A picture and its steps, in words too.
struct chained_picture {
  mr::picture picture;
  picture_axes axes;
  std::string steps{};

  chained_picture(mr::picture p, int orientation)
      : picture(std::move(p)), axes(picture.header().width, picture.header().height, orientation) {}

  void crop(const mr::crop_box& box) {
    picture = picture.crop(box);
    axes.across.crop(static_cast<std::int64_t>(box.left), static_cast<std::int64_t>(box.width));
    axes.down.crop(static_cast<std::int64_t>(box.top), static_cast<std::int64_t>(box.height));
    steps += " crop " + std::to_string(box.width) + " x " + std::to_string(box.height) + " at " +
             std::to_string(box.left) + ", " + std::to_string(box.top);
  }
  void resize(std::size_t height, std::size_t width) {
    picture = picture.resize(height, width);
    axes.across.resize(static_cast<std::int64_t>(width));
    axes.down.resize(static_cast<std::int64_t>(height));
    steps += " resize to " + std::to_string(width) + " x " + std::to_string(height);
  }
  void flip() {
    picture = picture.flip();
    axes.across.flip();
    steps += " flip";
  }

  void pad(const mr::padding_sides& sides, const mr::padding_fill& fill = {}) {
    picture = picture.pad(sides, fill);
    axes.across.pad(static_cast<std::int64_t>(sides.left), static_cast<std::int64_t>(sides.right));
    axes.down.pad(static_cast<std::int64_t>(sides.top), static_cast<std::int64_t>(sides.bottom));
    steps += " pad " + std::to_string(sides.left) + ", " + std::to_string(sides.top) + ", " +
             std::to_string(sides.right) + ", " + std::to_string(sides.bottom);
  }
  /// Random padding with the color of `fill`; none if the padding of an earlier step hides the entire image.
  void pad_randomly(mr::rng& d, const mr::padding_fill& fill = {}) {
    if (axes.across.visible_count() == 0 || axes.down.visible_count() == 0) return;
    pad({.left = d.below(12), .top = d.below(12), .right = d.below(12), .bottom = d.below(12)}, fill);
  }

  /// Up to `most` random steps. A chain that a plan cannot represent exactly ends before that step.
  void take_random_steps(mr::rng& d, std::uint64_t most, std::size_t largest, bool pads = false) {
    for (std::uint64_t n = d.below(most + 1); n > 0; --n) {
      const auto before = *this;
      try {
        switch (d.below(pads ? 4 : 3)) {
          case 0: {
            const std::size_t width = d.below(picture.width()) + 1, height = d.below(picture.height()) + 1;
            crop({.left = d.below(picture.width() - width + 1), .top = d.below(picture.height() - height + 1),
                  .width = width, .height = height});
            break;
          }
          case 1: {
            const std::size_t height = d.below(largest) + 1, width = d.below(largest) + 1;   // in this order
            resize(height, width);
            break;
          }
          case 2: flip(); break;
          default: pad_randomly(d);
        }
        // A plan renders at least one output of an image that is much smaller than its padding.
        if (axes.across.visible_count() == 0 || axes.down.visible_count() == 0) *this = before;
      } catch (const mr::setup_error&) {
        *this = before;
        return;
      }
    }
  }
};

/// The file with an EXIF segment of this orientation.
inline std::vector<std::byte> with_orientation(std::vector<std::byte> file, int orientation) {
  const auto exif = {0xff, 0xe1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4d, 0x4d, 0, 42, 0, 0, 0, 8,
                     0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
  std::vector<std::byte> segment;
  for (const int v : exif) segment.push_back(static_cast<std::byte>(v));
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

}  // namespace slow
