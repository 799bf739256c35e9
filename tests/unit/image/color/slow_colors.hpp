// Color operations as Pillow defines them, pixel by pixel and step by step: slow, and obvious.
//
//   slow::picture p = slow::random_picture(5, 7, 1);      // width, height, seed
//   slow::contrast(p, 1.4);
//
// Written from descriptions of Pillow's arithmetic, and compared with Pillow itself by tests/system/pillow.
#pragma once

#include <millrace/base/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace slow {

namespace mr = millrace;

using bytes = std::vector<std::uint8_t>;

struct picture {
  std::size_t width = 0, height = 0;
  bytes data{};

  picture(std::size_t w, std::size_t h) : width(w), height(h), data(w * h * 3) {}
  std::uint8_t& at(std::size_t x, std::size_t y, std::size_t c) { return data[(y * width + x) * 3 + c]; }
  int at(std::size_t x, std::size_t y, std::size_t c) const { return data[(y * width + x) * 3 + c]; }
  std::size_t count() const { return width * height; }
  bool operator==(const picture&) const = default;
};

inline picture random_picture(std::size_t width, std::size_t height, std::uint64_t seed) {
  picture p(width, height);
  mr::rng random({.seed = seed});
  for (auto& byte : p.data) byte = static_cast<std::uint8_t>(random.bits() >> 56);
  return p;
}

/// Random images, and images of extreme sizes and values.
inline std::vector<picture> pictures() {
  std::vector<picture> all;
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 2}, {3, 3}, {1, 9}, {9, 1}, {2, 40}, {40, 2}, {31, 3}, {33, 5},
                             {64, 64}, {67, 41}, {130, 7}})
    all.push_back(random_picture(static_cast<std::size_t>(w), static_cast<std::size_t>(h), all.size()));
  for (const int value : {0, 1, 77, 255}) {   // constant
    all.emplace_back(35, 6);
    std::fill(all.back().data.begin(), all.back().data.end(), static_cast<std::uint8_t>(value));
  }
  picture gradient(256, 5), extremes(50, 20), smooth(70, 60), narrow(64, 40);
  mr::rng random({.seed = 9});
  for (std::size_t y = 0; y < gradient.height; ++y)
    for (std::size_t x = 0; x < gradient.width; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        gradient.at(x, y, c) = static_cast<std::uint8_t>(c == 0 ? x : c == 1 ? 255 - x : x * (y + 1) / 5);
  for (auto& byte : extremes.data) byte = random.chance(0.5) ? 255 : 0;
  for (std::size_t y = 0; y < smooth.height; ++y)
    for (std::size_t x = 0; x < smooth.width; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        smooth.at(x, y, c) = static_cast<std::uint8_t>(
            128 + 100 * std::sin(0.1 * static_cast<double>(x) + static_cast<double>(c)) *
                      std::cos(0.07 * static_cast<double>(y)));
  for (auto& byte : narrow.data) byte = static_cast<std::uint8_t>(random.between(90, 140));
  for (const picture& p : {gradient, extremes, smooth, narrow}) all.push_back(p);
  return all;
}

/// Extreme factors, and some between.
inline std::vector<double> factors() {
  return {0, 1e-7, 0.1, 0.25, 0.5, 0.6, 0.73, 0.9999999, 1, 1.0000001, 1.27, 1.4, 1.5, 1.9, 2, 3.7, 10, 1000, -0.5};
}

inline std::uint8_t clamped(double value) {
  return static_cast<std::uint8_t>(value <= 0 ? 0 : value >= 255 ? 255 : value);
}

/// A product that the compiler cannot fuse with a sum.
template <class T>
T product(T a, T b) {
  volatile T product = a * b;
  return product;
}

inline std::uint8_t blend(int background, int value, float factor) {
  if (factor == 0) return static_cast<std::uint8_t>(background);
  if (factor == 1) return static_cast<std::uint8_t>(value);
  return clamped(static_cast<float>(background) + product(factor, static_cast<float>(value - background)));
}

inline int luma(const picture& p, std::size_t i) {
  return (19'595 * p.data[3 * i] + 38'470 * p.data[3 * i + 1] + 7'471 * p.data[3 * i + 2] + 32'768) >> 16;
}

inline void brightness(picture& p, double factor) {
  for (auto& byte : p.data) byte = blend(0, byte, static_cast<float>(factor));
}

inline void contrast(picture& p, double factor) {
  double sum = 0;
  for (std::size_t i = 0; i < p.count(); ++i) sum += luma(p, i);
  const int mean = static_cast<int>(sum / static_cast<double>(p.count()) + 0.5);
  for (auto& byte : p.data) byte = blend(mean, byte, static_cast<float>(factor));
}

inline void saturation(picture& p, double factor) {
  for (std::size_t i = 0; i < p.count(); ++i) {
    const int gray = luma(p, i);
    for (std::size_t c = 0; c < 3; ++c)
      p.data[3 * i + c] = blend(gray, p.data[3 * i + c], static_cast<float>(factor));
  }
}

inline void grayscale(picture& p) {
  for (std::size_t i = 0; i < p.count(); ++i) {
    const int gray = luma(p, i);
    for (std::size_t c = 0; c < 3; ++c) p.data[3 * i + c] = static_cast<std::uint8_t>(gray);
  }
}

inline void invert(picture& p) {
  for (auto& byte : p.data) byte = static_cast<std::uint8_t>(255 - byte);
}

inline void posterize(picture& p, int bits) {
  int mask = 0;
  for (int bit = 0; bit < bits; ++bit) mask |= 128 >> bit;
  for (auto& byte : p.data) byte = static_cast<std::uint8_t>(byte & mask);
}

inline void solarize(picture& p, double threshold) {
  for (auto& byte : p.data) byte = byte < threshold ? byte : static_cast<std::uint8_t>(255 - byte);
}

inline void solarize_add(picture& p, int amount) {
  for (auto& byte : p.data)
    if (byte < 128) byte = static_cast<std::uint8_t>(std::min(byte + amount, 255));
}

inline void autocontrast(picture& p) {
  for (std::size_t c = 0; c < 3; ++c) {
    int low = 255, high = 0;
    for (std::size_t i = 0; i < p.count(); ++i) {
      low = std::min<int>(low, p.data[3 * i + c]);
      high = std::max<int>(high, p.data[3 * i + c]);
    }
    if (high <= low) continue;
    const double scale = 255.0 / (high - low), offset = product<double>(-low, scale);
    for (std::size_t i = 0; i < p.count(); ++i) {
      auto& byte = p.data[3 * i + c];
      byte = clamped(std::trunc(product<double>(byte, scale) + offset));
    }
  }
}

inline void equalize(picture& p) {
  for (std::size_t c = 0; c < 3; ++c) {
    std::array<int, 256> counts{};
    for (std::size_t i = 0; i < p.count(); ++i) ++counts[p.data[3 * i + c]];
    int last = 0;
    for (const int count : counts) last = count != 0 ? count : last;
    const int step = (static_cast<int>(p.count()) - last) / 255;
    if (step == 0) continue;
    std::array<int, 256> table{};
    int sum = step / 2;
    for (std::size_t v = 0; v < 256; ++v) {
      table[v] = std::min(sum / step, 255);
      sum += counts[v];
    }
    for (std::size_t i = 0; i < p.count(); ++i)
      p.data[3 * i + c] = static_cast<std::uint8_t>(table[p.data[3 * i + c]]);
  }
}

/// H, S and V as bytes, by Pillow's conversion.
inline std::array<std::uint8_t, 3> hsv_of(int r, int g, int b) {
  const int most = std::max({r, g, b}), least = std::min({r, g, b});
  if (most == least) return {0, 0, static_cast<std::uint8_t>(most)};
  const auto span = static_cast<float>(most - least);
  const float s = span / static_cast<float>(most);
  const float rc = static_cast<float>(most - r) / span, gc = static_cast<float>(most - g) / span,
              bc = static_cast<float>(most - b) / span;
  float h;
  if (r == most) h = bc - gc;
  else if (g == most) h = static_cast<float>(2.0 + rc - bc);
  else h = static_cast<float>(4.0 + gc - rc);
  h = static_cast<float>(std::fmod(h / 6.0 + 1.0, 1.0));
  return {clamped(std::trunc(h * 255.0)), clamped(std::trunc(s * 255.0)), static_cast<std::uint8_t>(most)};
}

inline std::array<std::uint8_t, 3> rgb_of(std::uint8_t h, std::uint8_t s, std::uint8_t v) {
  if (s == 0) return {v, v, v};
  const double place = static_cast<float>(h) * 6.0 / 255.0;
  const int sextant = static_cast<int>(std::floor(place));
  const auto f = static_cast<float>(place - sextant), fs = static_cast<float>(s / 255.0);
  const float both = fs * f;
  const auto p = static_cast<std::uint8_t>(std::round(product<double>(v, 1.0 - fs)));
  const auto q = static_cast<std::uint8_t>(std::round(product<double>(v, 1.0 - both)));
  const auto t = static_cast<std::uint8_t>(std::round(product<double>(v, 1.0 - product<double>(fs, 1.0 - f))));
  switch (sextant % 6) {
    case 0: return {v, t, p};
    case 1: return {q, v, p};
    case 2: return {p, v, t};
    case 3: return {p, q, v};
    case 4: return {t, p, v};
    default: return {v, p, q};
  }
}

/// `shift` is a share of the circle, as in torchvision's adjust_hue of a Pillow image.
inline void hue(picture& p, double shift) {
  const int by = static_cast<int>(shift * 255);
  for (std::size_t i = 0; i < p.count(); ++i) {
    const auto hsv = hsv_of(p.data[3 * i], p.data[3 * i + 1], p.data[3 * i + 2]);
    const auto rgb = rgb_of(static_cast<std::uint8_t>(hsv[0] + by), hsv[1], hsv[2]);
    std::copy(rgb.begin(), rgb.end(), p.data.begin() + static_cast<std::ptrdiff_t>(3 * i));
  }
}

inline void sharpness(picture& p, double factor) {
  const picture from = p;
  for (std::size_t y = 1; y + 1 < p.height; ++y)
    for (std::size_t x = 1; x + 1 < p.width; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        float sum = 0.5F;   // Pillow's own arithmetic, with fractional weights
        const float side = 1.0F / 13, middle = 5.0F / 13;
        for (const std::size_t row : {y + 1, y, y - 1}) {
          float line = product(side, static_cast<float>(from.at(x - 1, row, c)));
          line += product(row == y ? middle : side, static_cast<float>(from.at(x, row, c)));
          line += product(side, static_cast<float>(from.at(x + 1, row, c)));
          sum += line;
        }
        p.at(x, y, c) = blend(clamped(sum), from.at(x, y, c), static_cast<float>(factor));
      }
}

/// One pass of a box with fractional ends, along rows or along columns.
inline void box_pass(picture& p, float extended, bool along_rows) {
  const int radius = static_cast<int>(extended);
  const auto weight = static_cast<std::uint32_t>(16'777'216.0F / (extended * 2 + 1));
  const std::uint32_t end = (16'777'216U - static_cast<std::uint32_t>(2 * radius + 1) * weight) / 2;
  const picture from = p;
  const int length = static_cast<int>(along_rows ? p.width : p.height);
  for (int y = 0; y < static_cast<int>(p.height); ++y)
    for (int x = 0; x < static_cast<int>(p.width); ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const auto value = [&](int distance) {
          const auto at = static_cast<std::size_t>(std::clamp((along_rows ? x : y) + distance, 0, length - 1));
          return static_cast<std::uint32_t>(along_rows ? from.at(at, static_cast<std::size_t>(y), c)
                                                       : from.at(static_cast<std::size_t>(x), at, c));
        };
        std::uint32_t sum = 0;
        for (int d = -radius; d <= radius; ++d) sum += value(d);
        p.at(static_cast<std::size_t>(x), static_cast<std::size_t>(y), c) = static_cast<std::uint8_t>(
            (sum * weight + (value(-radius - 1) + value(radius + 1)) * end + (1U << 23)) >> 24);
      }
}

inline void pillow_blur(picture& p, double sigma) {
  const auto s = static_cast<float>(sigma);
  const float variance = product(s, s) / 3;
  const auto length = static_cast<float>(std::sqrt(product<double>(12.0, variance) + 1.0));
  const auto l = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float a = product(2 * l + 1, product(l, l + 1) - product(3.0F, variance));
  a /= product(6.0F, variance - product(l + 1, l + 1));
  if (l + a == 0) return;
  for (const bool along_rows : {true, false})
    for (int pass = 0; pass < 3; ++pass) box_pass(p, l + a, along_rows);
}

/// The sum that torchvision rounds, at one pixel.
inline double gaussian_at(const picture& p, int x, int y, std::size_t c, int size, double sigma) {
  const int half = size / 2;
  const auto mirrored = [](int at, int count) {
    while (count > 1 && (at < 0 || at >= count)) at = at < 0 ? -at : 2 * (count - 1) - at;
    return static_cast<std::size_t>(count == 1 ? 0 : at);
  };
  const auto weight = [&](int d) { return std::exp(-d * d / (2 * sigma * sigma)); };
  double sum = 0, total = 0;
  for (int j = -half; j <= half; ++j)
    for (int i = -half; i <= half; ++i) {
      const double w = weight(i) * weight(j);
      total += w;
      sum += w * p.at(mirrored(x + i, static_cast<int>(p.width)), mirrored(y + j, static_cast<int>(p.height)), c);
    }
  return sum / total;
}

/// The six numbers of Pillow's transform(): xin = m[0] x + m[1] y + m[2], yin = m[3] x + m[4] y + m[5].
using matrix = std::array<double, 6>;
using color = std::array<std::uint8_t, 3>;

inline double place_of(const matrix& m, int row, double x, double y) {
  const auto k = static_cast<std::size_t>(3 * row);
  return product(m[k], x) + product(m[k + 1], y) + m[k + 2];
}

inline matrix rotation(double degrees, std::size_t width, std::size_t height) {
  double turned = std::fmod(degrees, 360);
  if (turned < 0) turned += 360;
  const double angle = -turned * (3.14159265358979323846 / 180);
  const auto digits = [](double v) { return static_cast<double>(std::round(v * 1e15L) / 1e15L); };
  const double cosine = digits(std::cos(angle)), sine = digits(std::sin(angle));
  matrix m = {cosine, sine, 0, -sine, cosine, 0};
  const double cx = static_cast<double>(width) / 2, cy = static_cast<double>(height) / 2;
  const double x0 = place_of(m, 0, -cx, -cy), y0 = place_of(m, 1, -cx, -cy);
  m[2] = x0 + cx;
  m[5] = y0 + cy;
  return m;
}

inline void nearest(picture& p, const matrix& m, const color& fill) {
  const picture from = p;
  const auto fixed = [](double v) { return static_cast<std::int64_t>(std::floor(v * 65'536 + 0.5)); };
  const bool scaled = m[1] == 0 && m[3] == 0;
  for (std::size_t y = 0; y < p.height; ++y)
    for (std::size_t x = 0; x < p.width; ++x) {
      std::int64_t sx, sy;
      if (scaled) {
        double real_x = m[2] + m[0] * 0.5, real_y = m[5] + m[4] * 0.5;
        for (std::size_t i = 0; i < x; ++i) real_x += m[0];
        for (std::size_t i = 0; i < y; ++i) real_y += m[4];
        sx = static_cast<std::int64_t>(std::floor(real_x));
        sy = static_cast<std::int64_t>(std::floor(real_y));
      } else {
        const auto ix = static_cast<std::int64_t>(x), iy = static_cast<std::int64_t>(y);
        sx = (fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + ix * fixed(m[0]) + iy * fixed(m[1])) >> 16;
        sy = (fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + ix * fixed(m[3]) + iy * fixed(m[4])) >> 16;
      }
      const bool inside = sx >= 0 && sx < static_cast<std::int64_t>(p.width) && sy >= 0 &&
                          sy < static_cast<std::int64_t>(p.height);
      for (std::size_t c = 0; c < 3; ++c)
        p.at(x, y, c) = inside ? static_cast<std::uint8_t>(
                                     from.at(static_cast<std::size_t>(sx), static_cast<std::size_t>(sy), c))
                               : fill[c];
    }
}

inline double between(double a, double b, double d) { return a + product(b - a, d); }

inline double cubic(const double* v, double d) {
  const double p2 = -v[0] + v[2], p3 = 2 * (v[0] - v[1]) + v[2] - v[3], p4 = -v[0] + v[1] - v[2] + v[3];
  return v[1] + product(d, p2 + product(d, p3 + product(d, p4)));
}

/// Bilinear of 2 x 2 pixels, or bicubic of 4 x 4.
inline void smooth_warp(picture& p, const matrix& m, bool bicubic, const color& fill) {
  const picture from = p;
  const auto width = static_cast<int>(p.width), height = static_cast<int>(p.height);
  for (std::size_t y = 0; y < p.height; ++y)
    for (std::size_t x = 0; x < p.width; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        double sx = place_of(m, 0, static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
        double sy = place_of(m, 1, static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5);
        if (sx < 0 || sx >= width || sy < 0 || sy >= height) {
          p.at(x, y, c) = fill[c];
          continue;
        }
        sx -= 0.5;
        sy -= 0.5;
        const int left = static_cast<int>(std::floor(sx)), top = static_cast<int>(std::floor(sy));
        const auto value = [&](int column, int row) {
          return static_cast<double>(from.at(static_cast<std::size_t>(std::clamp(column, 0, width - 1)),
                                             static_cast<std::size_t>(std::clamp(row, 0, height - 1)), c));
        };
        double rows[4];
        for (int k = 0; k < 4; ++k) {
          double values[4];
          for (int i = 0; i < 4; ++i) values[i] = value(left - 1 + i, top - 1 + k);
          rows[k] = bicubic ? cubic(values, sx - left) : between(values[1], values[2], sx - left);
        }
        p.at(x, y, c) = clamped(bicubic ? cubic(rows, sy - top) : between(rows[1], rows[2], sy - top));
      }
}

}  // namespace slow
