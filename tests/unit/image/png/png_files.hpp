// PNG files of every kind for tests, from samples, with zlib's deflate.
//
//   const slow::png_samples s = slow::random_samples({.width = 5, .height = 3, .color = 3, .depth = 4}, 1);
//   std::vector<std::byte> file = slow::make_png(s, {.filter = 4, .piece_bytes = 100});
//   file = slow::with_chunk(file, "tRNS", "\0\1", "IDAT");        // before the first IDAT
//
// Filters are those of the recipe, or random for each row; the encoder does not optimize them.
#pragma once

#include <millrace/base/random.hpp>

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace slow {

namespace mr = millrace;

struct png_kind {
  std::size_t width = 1, height = 1;
  unsigned color = 2;   ///< as in the file: 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  unsigned depth = 8;
  bool interlaced = false;

  std::size_t channels() const { return color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1; }
};

struct png_samples {
  png_kind kind{};
  std::vector<unsigned> sample{};   ///< [height, width, channels]

  unsigned at(std::size_t y, std::size_t x, std::size_t c) const {
    return sample[(y * kind.width + x) * kind.channels() + c];
  }
};

struct png_recipe {
  int filter = -1;                   ///< of all rows; below 0: random for each
  std::size_t piece_bytes = 1 << 16; ///< of an IDAT chunk
  int level = 6, strategy = Z_DEFAULT_STRATEGY, window_bits = 15;
  std::size_t colors = 256;          ///< of the palette, at most as many as the depth has
  std::uint64_t seed = 1;
};

inline png_samples random_samples(const png_kind& kind, std::uint64_t seed) {
  png_samples result{.kind = kind};
  mr::rng d({.seed = seed});
  const unsigned most = (1U << kind.depth) - 1;
  result.sample.resize(kind.width * kind.height * kind.channels());
  // Some repeat, so that there are matches.
  for (std::size_t i = 0; i < result.sample.size(); ++i)
    result.sample[i] = i >= kind.channels() && d.chance(0.3) ? result.sample[i - kind.channels()] :
                                                             static_cast<unsigned>(d.below(most + 1));
  return result;
}

inline void put_number(std::string& to, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 255);
}

inline std::string chunk_of(std::string_view name, std::string_view data) {
  std::string body(name), chunk;
  body += data;
  put_number(chunk, data.size());
  chunk += body;
  put_number(chunk, ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  return chunk;
}

/// A zlib stream.
inline std::string deflated(std::string_view bytes, const png_recipe& how) {
  z_stream z{};
  if (deflateInit2(&z, how.level, Z_DEFLATED, how.window_bits, 8, how.strategy) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string deflated_bytes(deflateBound(&z, static_cast<uLong>(bytes.size())) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(deflated_bytes.data());
  z.avail_out = static_cast<uInt>(deflated_bytes.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  deflated_bytes.resize(z.total_out);
  deflateEnd(&z);
  return deflated_bytes;
}

/// Filters rows of an image or of a pass and appends them.
class png_filterer {
 public:
  png_filterer(const png_kind& kind, const png_recipe& how)
      : kind_(kind), how_(how), d_({.seed = how.seed, .epoch = 7}) {}

  template <class Sample>
  void add(std::size_t width, std::size_t height, const Sample& sample) {
    std::vector<std::uint8_t> above;
    for (std::size_t y = 0; y < height; ++y) {
      std::vector<std::uint8_t> row(1);
      unsigned bits = 0, count = 0;
      const auto put = [&](unsigned value, unsigned depth) {
        bits = bits << depth | value;
        for (count += depth; count >= 8; count -= 8) row.push_back(static_cast<std::uint8_t>(bits >> (count - 8)));
      };
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < kind_.channels(); ++c) put(sample(y, x, c), kind_.depth);
      if (count > 0) put(0, 8 - count);
      above.resize(row.size());
      filter(row, above);
      above = row;
    }
  }
  std::string bytes{};

 private:
  void filter(const std::vector<std::uint8_t>& row, const std::vector<std::uint8_t>& above) {
    const auto kind = how_.filter >= 0 ? static_cast<unsigned>(how_.filter) : static_cast<unsigned>(d_.below(5));
    const std::size_t pixel = std::max<std::size_t>(1, kind_.channels() * kind_.depth / 8);
    bytes += static_cast<char>(kind);
    for (std::size_t i = 1; i < row.size(); ++i) {
      const int a = i > pixel ? row[i - pixel] : 0, b = above[i], c = i > pixel ? above[i - pixel] : 0;
      const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
      const int predicted[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : c};
      bytes += static_cast<char>(row[i] - predicted[kind]);
    }
  }

  png_kind kind_;
  png_recipe how_;
  mr::rng d_;
};

/// The stream before it is deflated.
inline std::string filtered_rows(const png_samples& s, const png_recipe& how) {
  const png_kind& k = s.kind;
  png_filterer rows(k, how);
  if (!k.interlaced) {
    rows.add(k.width, k.height, [&](std::size_t y, std::size_t x, std::size_t c) { return s.at(y, x, c); });
    return rows.bytes;
  }
  constexpr std::size_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  for (const auto& [left, top, across, down] : passes) {
    const std::size_t width = k.width > left ? (k.width - left + across - 1) / across : 0;
    const std::size_t height = k.height > top ? (k.height - top + down - 1) / down : 0;
    if (width == 0 || height == 0) continue;
    rows.add(width, height, [&, left = left, top = top, across = across, down = down](
                                std::size_t y, std::size_t x, std::size_t c) {
      return s.at(top + y * down, left + x * across, c);
    });
  }
  return rows.bytes;
}

inline std::vector<std::byte> file_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string_view text_of_file(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A file with this zlib stream.
inline std::vector<std::byte> png_with_stream(const png_kind& k, const png_recipe& how, std::string_view stream) {
  std::string file = "\x89PNG\r\n\x1a\n", head;
  put_number(head, k.width);
  put_number(head, k.height);
  for (const unsigned v : {k.depth, k.color, 0U, 0U, k.interlaced ? 1U : 0U}) head += static_cast<char>(v);
  file += chunk_of("IHDR", head);
  if (k.color == 3) {
    mr::rng d({.seed = how.seed, .epoch = 3});
    std::string palette;
    for (std::size_t i = 0; i < 3 * std::min(how.colors, std::size_t{1} << k.depth); ++i)
      palette += static_cast<char>(d.below(256));
    file += chunk_of("PLTE", palette);
  }
  while (!stream.empty()) {
    const auto piece = stream.substr(0, how.piece_bytes);
    file += chunk_of("IDAT", piece);
    stream.remove_prefix(piece.size());
  }
  file += chunk_of("IEND", "");
  return file_of_text(file);
}

inline std::vector<std::byte> make_png(const png_samples& s, const png_recipe& how = {}) {
  return png_with_stream(s.kind, how, deflated(filtered_rows(s, how), how));
}

/// The file with one more chunk before the first one of the name `before`.
inline std::vector<std::byte> with_chunk(std::span<const std::byte> file, std::string_view name, std::string_view data,
                                         std::string_view before) {
  std::string text(text_of_file(file));
  text.insert(text.find(before) - 4, chunk_of(name, data));
  return file_of_text(text);
}

/// Every color type with each of its depths.
template <class Use>
void for_each_png_kind(const Use& use) {
  for (const unsigned color : {0U, 2U, 3U, 4U, 6U})
    for (const unsigned depth : {1U, 2U, 4U, 8U, 16U}) {
      if ((depth < 8 && color != 0 && color != 3) || (depth == 16 && color == 3)) continue;
      for (const bool interlaced : {false, true})
        use(png_kind{.color = color, .depth = depth, .interlaced = interlaced});
    }
}

}  // namespace slow
