// Mutations of a fuzz_input that respect the structure of a JPEG. Most other changes would break its first table.
//
//   mr::rng d({.seed = seed});
//   slow::jpeg_mutator(d, LLVMFuzzerMutate).change(input);
//
// libjpeg writes new files, so that the fuzzer needs no initial ones. Images are small.
#pragma once

#include "../../unit/image/random_jpegs.hpp"
#include "../../unit/image/jpeg_recipes.hpp"
#include "fuzz_input.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slow {

class jpeg_mutator {
 public:
  using file_bytes = std::vector<std::byte>;
  using any_mutation = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t max_size);

  jpeg_mutator(mr::rng& d, any_mutation any) : d_(d), any_(any) {}

  void change(fuzz_input& in) {
    for (std::uint64_t times = d_.below(3) + 1; times > 0; --times) {
      if (d_.chance(0.15)) {
        in.knob[d_.below(fuzz_input::first_size)] = static_cast<std::uint8_t>(d_.below(256));
        continue;
      }
      const std::size_t i = d_.below(2);
      change_file(in.file[i], in.file[1 - i]);
    }
  }

  /// A file without damage. The built-in decoder does not support a few of them.
  file_bytes new_file() {
    const std::size_t largest = d_.chance(0.9) ? 24 : 48;
    if (d_.chance(0.3)) return progressive_file(largest);
    if (d_.chance(0.8)) {
      auto f = draw_file(d_, largest);
      if (!f.recipe.optimize_tables || d_.chance(0.3)) return f.bytes;   // decoding tables are slow to build
      f.recipe.optimize_tables = false;
      return make_file(photo(f.height, f.width, f.channels, d_.bits()), f.recipe);
    }
    static constexpr J_COLOR_SPACE stored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_YCCK};
    jpeg_recipe r{.stored = stored[d_.below(6)], .quality = static_cast<int>(d_.between(1, 100)),
                  .progressive = d_.chance(0.4), .arithmetic = d_.chance(0.2), .optimize_tables = d_.chance(0.3)};
    if (d_.chance(0.5)) r.restart_interval = static_cast<unsigned>(d_.between(1, 10));
    r.scan_for_each = !r.progressive && d_.chance(0.3);
    if (d_.chance(0.5)) r.sampling[0] = {static_cast<int>(d_.between(1, 4)), 1};
    else if (d_.chance(0.5)) r.sampling[0] = {static_cast<int>(d_.between(1, 2)), static_cast<int>(d_.between(1, 3))};
    return make_jpeg(photo(d_.below(largest) + 1, d_.below(largest) + 1, channels_of(r.stored), d_.bits()), r);
  }

 private:
  /// Without many scans, which do not fit into an input.
  file_bytes progressive_file(std::size_t largest) {
    constexpr std::size_t max_bytes = 1'900;
    for (;;) {
      const auto f = draw_progressive_file(d_, largest);
      if (f.bytes.size() <= max_bytes) return f.bytes;
    }
  }

  /// A marker with its payload; the scan's is the last one.
  struct segment {
    std::size_t at = 0, end = 0;
    unsigned marker = 0;
  };

  static unsigned number(const file_bytes& f, std::size_t at) { return std::to_integer<unsigned>(f[at]); }

  template <class Bytes>
  static auto iterator(Bytes& f, std::size_t at) { return f.begin() + static_cast<std::ptrdiff_t>(at); }

  static std::vector<segment> segments_of(const file_bytes& f) {
    std::vector<segment> segments;
    for (std::size_t at = 2; at + 4 <= f.size() && f[at] == std::byte{0xff};) {
      const std::size_t end = at + 2 + (number(f, at + 2) << 8 | number(f, at + 3));
      if (end > f.size()) break;
      segments.push_back({at, end, number(f, at + 1)});
      if (segments.back().marker == 0xda) break;
      at = end;
    }
    return segments;
  }

  static std::size_t begin_of_data(const file_bytes& f) {
    const auto all = segments_of(f);
    return all.empty() ? 0 : all.back().end;
  }

  std::byte any_byte() {
    static constexpr std::uint8_t usual[] = {0xff, 0x00, 0xd0, 0xd9, 0xda, 0xc4, 0x7f, 0x01};
    return static_cast<std::byte>(d_.chance(0.4) ? usual[d_.below(8)] : d_.below(256));
  }

  std::ptrdiff_t place(std::size_t from, std::size_t to) {
    return static_cast<std::ptrdiff_t>(from + d_.below(to - from + 1));
  }

  void change_file(file_bytes& f, const file_bytes& other) {
    if (f.size() < 8 || d_.chance(0.08)) f = new_file();
    else if (d_.chance(0.65)) change_data(f, other);
    else change_header(f, other);
    keep_small(f);
  }

  void change_data(file_bytes& f, const file_bytes& other) {
    const std::size_t data = begin_of_data(f);
    const auto at = place(data, f.size() - (data < f.size() ? 1 : 0));
    const auto insert = [&](std::initializer_list<unsigned> what) {
      for (const unsigned v : what) f.insert(f.begin() + at, static_cast<std::byte>(v));
    };
    switch (d_.below(10)) {
      case 9: return change_scan(f, data);
      case 0:
      case 1:
        for (std::uint64_t k = d_.below(3) + 1; k > 0 && data < f.size(); --k)
          f[data + d_.below(f.size() - data)] ^= static_cast<std::byte>(1U << d_.below(8));
        return;
      case 2:
        f.resize(static_cast<std::size_t>(at));
        return;
      case 3:
        f.erase(f.begin() + at, f.begin() + std::min(at + d_.between(1, 8), std::ssize(f)));
        return;
      case 4:
        for (std::uint64_t k = d_.below(4) + 1; k > 0; --k) f.insert(f.begin() + at, any_byte());
        return;
      case 5:   // inserted back to front
        insert({d_.chance(0.7) ? 0xd0 + static_cast<unsigned>(d_.below(10)) : std::to_integer<unsigned>(any_byte()),
                0xffU});
        return;
      case 6: return change_marker(f, data);
      case 7: {
        const std::size_t from = begin_of_data(other);
        f.resize(static_cast<std::size_t>(at));
        f.insert(f.end(), other.begin() + place(from, other.size()), other.end());
        return;
      }
      default: return change_anyhow(f, data, f.size());
    }
  }

  /// Removes or repeats a later scan's header, or the complete scan.
  void change_scan(file_bytes& f, std::size_t data) {
    std::vector<std::size_t> scans;
    for (std::size_t i = data; i + 14 < f.size(); ++i)
      if (f[i] == std::byte{0xff} && f[i + 1] == std::byte{0xda}) scans.push_back(i);
    if (scans.empty()) return;
    const std::size_t n = d_.below(scans.size()), at = scans[n];
    const std::size_t end = n + 1 < scans.size() ? scans[n + 1] : f.size() - 2;
    if (d_.chance(0.7)) {
      f[at + 4 + d_.below(10)] = d_.chance(0.7) ? static_cast<std::byte>(d_.below(64)) : any_byte();
    } else if (d_.chance(0.5)) {
      f.erase(iterator(f, at), iterator(f, end));
    } else {
      const file_bytes copy(iterator(f, at), iterator(f, end));
      f.insert(iterator(f, scans[d_.below(scans.size())]), copy.begin(), copy.end());
    }
  }

  /// Changes or removes a restart marker.
  void change_marker(file_bytes& f, std::size_t data) {
    std::vector<std::size_t> places;
    for (std::size_t i = data; i + 1 < f.size(); ++i)
      if (f[i] == std::byte{0xff} && f[i + 1] != std::byte{0}) places.push_back(i);
    if (places.empty()) return;
    const std::size_t at = places[d_.below(places.size())];
    if (d_.chance(0.6)) f[at + 1] = static_cast<std::byte>(0xd0 + d_.below(10));
    else f.erase(iterator(f, at), iterator(f, at + 2));
  }

  void change_header(file_bytes& f, const file_bytes& other) {
    const auto all = segments_of(f);
    if (all.empty()) return change_anyhow(f, 0, f.size());
    const segment s = all[d_.below(all.size())];
    const auto begin = iterator(f, s.at), end = iterator(f, s.end);
    switch (d_.below(9)) {
      case 0:
        f[s.at + 1 + d_.below(s.end - s.at - 1)] ^= static_cast<std::byte>(1U << d_.below(8));
        return;
      case 1:
        f[s.at + 1 + d_.below(s.end - s.at - 1)] = any_byte();
        return;
      case 2:
        f.erase(begin, end);
        return;
      case 3: {   // repeated elsewhere
        const file_bytes copy(begin, end);
        const std::size_t to = all[d_.below(all.size())].at;
        f.insert(iterator(f, to), copy.begin(), copy.end());
        return;
      }
      case 4: {   // of the other file
        for (const segment& o : segments_of(other)) {
          if (o.marker != s.marker) continue;
          const file_bytes copy(iterator(other, o.at), iterator(other, o.end));
          f.insert(f.erase(begin, end), copy.begin(), copy.end());
          return;
        }
        return;
      }
      case 5: return change_frame(f);
      case 6: {
        const std::byte interval[] = {std::byte{0xff}, std::byte{0xdd}, std::byte{0}, std::byte{4}, std::byte{0},
                                      static_cast<std::byte>(d_.below(12))};
        f.insert(begin, std::begin(interval), std::end(interval));
        return;
      }
      case 7: return change_code(f, all);
      default: return change_anyhow(f, s.at, s.end);
    }
  }

  /// Adds code words of some length to a Huffman code: one, or as many as possible.
  void change_code(file_bytes& f, const std::vector<segment>& all) {
    std::vector<segment> codes;
    for (const segment& s : all)
      if (s.marker == 0xc4 && s.end - s.at >= 21) codes.push_back(s);
    if (codes.empty()) return;
    const segment s = codes[d_.below(codes.size())];
    const std::size_t counts = s.at + 5, last = d_.below(16);
    std::size_t free_words = 1, symbols = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      symbols += number(f, counts + i);
      free_words = 2 * free_words > number(f, counts + i) ? 2 * free_words - number(f, counts + i) : 0;
    }
    const std::size_t more = d_.chance(0.5) ? 1 : free_words;
    const std::size_t length = s.end - s.at - 2 + more, at = counts + 16 + symbols;
    if (number(f, counts + last) + more > 255 || at > s.end || length > 0xffff) return;
    f[counts + last] = static_cast<std::byte>(number(f, counts + last) + more);
    f[s.at + 2] = static_cast<std::byte>(length >> 8);
    f[s.at + 3] = static_cast<std::byte>(length & 255);
    f.insert(iterator(f, at), more, static_cast<std::byte>(d_.chance(0.5) ? d_.below(8) : d_.below(256)));
  }

  /// Size, samplings, numbers of the components.
  void change_frame(file_bytes& f) {
    static constexpr std::uint8_t factors[] = {0x11, 0x21, 0x12, 0x22, 0x41, 0x14, 0x31, 0x24, 0x00};
    for (const segment& s : segments_of(f)) {
      if (s.marker < 0xc0 || s.marker > 0xc2 || s.end - s.at < 10) continue;
      const std::size_t count = (s.end - s.at - 10) / 3;
      if (count > 0 && d_.chance(0.5)) f[s.at + 11 + 3 * d_.below(count)] = std::byte{factors[d_.below(9)]};
      else f[s.at + 6 + 2 * d_.below(2)] = static_cast<std::byte>(d_.below(70));
    }
  }

  /// By libFuzzer, which inserts values that the code compares with.
  void change_anyhow(file_bytes& f, std::size_t begin, std::size_t end) {
    std::vector<std::uint8_t> part(end - begin + 32);
    for (std::size_t i = begin; i < end; ++i) part[i - begin] = std::to_integer<std::uint8_t>(f[i]);
    part.resize(any_(part.data(), end - begin, part.size()));
    const auto to = f.erase(iterator(f, begin), iterator(f, end));
    const auto bytes = std::as_bytes(std::span(part));
    f.insert(to, bytes.begin(), bytes.end());
  }

  /// Large files are slow without further benefit. A few remain, for the limits.
  void keep_small(file_bytes& f) {
    if (d_.chance(0.02)) return;
    for (const segment& s : segments_of(f)) {
      if (s.marker < 0xc0 || s.marker > 0xcf || s.marker == 0xc4 || s.end - s.at < 10) continue;
      for (const std::size_t at : {s.at + 5, s.at + 7})
        if (f[at] != std::byte{0} || number(f, at + 1) > 100) {
          f[at] = std::byte{0};
          f[at + 1] = static_cast<std::byte>(d_.below(40) + 1);
        }
    }
  }

  mr::rng& d_;
  any_mutation any_;
};

}  // namespace slow
