// JPEG files of every kind that libjpeg can write, and their contents, read in the simplest way.
#pragma once

#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/huffman_code.hpp>
#include <millrace/image/jpeg/libjpeg/libjpeg.hpp>

#include "slow_pictures.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slow {

struct marker {
  int code = JPEG_COM;
  std::string payload{};
};

struct jpeg_recipe {
  J_COLOR_SPACE stored = JCS_YCbCr;                                ///< gray, YCbCr, RGB, CMYK or YCCK
  std::array<std::pair<int, int>, 4> sampling{{{1, 1}, {1, 1}, {1, 1}, {1, 1}}};   ///< horizontal, vertical
  int quality = 90;
  bool progressive = false, arithmetic = false, optimize_tables = false, scan_for_each = false;
  unsigned restart_interval = 0;                                   ///< MCUs
  std::vector<marker> markers{};                                   ///< after libjpeg's own
  /// Added to a coefficient of the first block, after the quantizer.
  int more_in_coefficient = 0;
};

inline std::size_t channels_of(J_COLOR_SPACE stored) {
  return stored == JCS_GRAYSCALE ? 1 : stored == JCS_YCbCr || stored == JCS_RGB ? 3 : 4;
}

namespace recipe_detail {

struct compressor {
  jpeg_error_mgr messages{};
  jpeg_compress_struct info{};
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  std::array<jpeg_scan_info, 4> scans{};

  compressor() {
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &memory, &size);
  }
  compressor(const compressor&) = delete;
  compressor& operator=(const compressor&) = delete;
  ~compressor() {
    jpeg_destroy_compress(&info);
    std::free(memory);
  }
  void choose_coding(const jpeg_recipe& r) {
    info.arith_code = r.arithmetic;
    info.optimize_coding = r.optimize_tables && !r.arithmetic;
    info.restart_interval = r.restart_interval;
    if (r.progressive) jpeg_simple_progression(&info);
    if (!r.scan_for_each) return;
    for (int c = 0; c < info.num_components; ++c) {
      scans[static_cast<std::size_t>(c)] = {.comps_in_scan = 1, .component_index = {c}, .Ss = 0, .Se = 63, .Ah = 0,
                                            .Al = 0};
    }
    info.scan_info = scans.data();
    info.num_scans = info.num_components;
  }
  void write_markers(const jpeg_recipe& r) {
    for (const auto& m : r.markers)
      jpeg_write_marker(&info, m.code, reinterpret_cast<const JOCTET*>(m.payload.data()),
                        static_cast<unsigned>(m.payload.size()));
  }
  std::vector<std::byte> finish() {
    jpeg_finish_compress(&info);
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    return {begin, begin + size};
  }
};

struct decompressor {
  jpeg_error_mgr messages{};
  jpeg_decompress_struct info{};
  jvirt_barray_ptr* arrays = nullptr;

  explicit decompressor(std::span<const std::byte> file) {
    info.err = jpeg_std_error(&messages);
    messages.error_exit = stop;
    messages.emit_message = [](j_common_ptr, int) {};
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, 1);
    arrays = jpeg_read_coefficients(&info);
  }
  decompressor(const decompressor&) = delete;
  decompressor& operator=(const decompressor&) = delete;
  ~decompressor() { jpeg_destroy_decompress(&info); }

  JBLOCK& block(int component, JDIMENSION row, JDIMENSION column) {
    auto* common = reinterpret_cast<j_common_ptr>(&info);
    return (*info.mem->access_virt_barray(common, arrays[component], row, 1, 1))[column];
  }
};

/// The same file with another first coefficient; arithmetic coding can store any.
inline std::vector<std::byte> with_more_in_coefficient(std::span<const std::byte> file, const jpeg_recipe& r) {
  decompressor from(file);
  from.block(0, 0, 0)[1] = static_cast<JCOEF>(from.block(0, 0, 0)[1] + r.more_in_coefficient);
  compressor to;
  jpeg_copy_critical_parameters(&from.info, &to.info);
  to.choose_coding(r);
  jpeg_write_coefficients(&to.info, from.arrays);
  to.write_markers(r);
  return to.finish();
}

}  // namespace recipe_detail

/// `pixels` has channels_of(recipe.stored) channels.
inline std::vector<std::byte> make_jpeg(const mr::image& pixels, const jpeg_recipe& r) {
  recipe_detail::compressor to;
  auto& info = to.info;
  const auto [height, width, channels] = pixels.shape();
  info.image_height = static_cast<JDIMENSION>(height);
  info.image_width = static_cast<JDIMENSION>(width);
  info.input_components = static_cast<int>(channels);
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, r.stored);
  jpeg_set_quality(&info, r.quality, 1);
  for (int c = 0; c < info.num_components; ++c) {
    info.comp_info[c].h_samp_factor = r.sampling[static_cast<std::size_t>(c)].first;
    info.comp_info[c].v_samp_factor = r.sampling[static_cast<std::size_t>(c)].second;
  }
  to.choose_coding(r);
  jpeg_start_compress(&info, 1);
  to.write_markers(r);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  auto file = to.finish();
  return r.more_in_coefficient == 0 ? file : recipe_detail::with_more_in_coefficient(file, r);
}

/// Size, layout, quantizers and every coefficient, one after the other.
inline std::vector<int> coefficients(std::span<const std::byte> file) {
  recipe_detail::decompressor from(file);
  const auto& info = from.info;
  std::vector<int> all{static_cast<int>(info.image_width), static_cast<int>(info.image_height), info.num_components,
                       static_cast<int>(info.jpeg_color_space)};
  for (int c = 0; c < info.num_components; ++c) {
    const auto& layout = info.comp_info[c];
    for (const int number : {layout.component_id, layout.h_samp_factor, layout.v_samp_factor}) all.push_back(number);
    for (const auto step : info.quant_tbl_ptrs[layout.quant_tbl_no]->quantval) all.push_back(step);
    for (JDIMENSION y = 0; y < layout.height_in_blocks; ++y)
      for (JDIMENSION x = 0; x < layout.width_in_blocks; ++x)
        for (const JCOEF value : from.block(c, y, x)) all.push_back(value);
  }
  return all;
}

/// Every byte from SOI to the first table or frame header: the markers with metadata of the image.
inline std::string leading_markers(std::span<const std::byte> file) {
  std::size_t at = 2;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  while (byte(at + 1) >= 0xe0) at += 2 + (byte(at + 2) << 8) + byte(at + 3);
  return {reinterpret_cast<const char*>(file.data()), at};
}

inline std::size_t restart_markers(std::span<const std::byte> file) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < file.size(); ++i)
    count += file[i] == std::byte{0xff} && file[i + 1] >= std::byte{0xd0} && file[i + 1] <= std::byte{0xd7};
  return count;
}

// Bytes that do not belong in a JPEG, and the places for them.

using file_bytes = std::vector<std::byte>;

inline file_bytes with(file_bytes file, std::size_t at, std::string_view junk) {
  const auto bytes = std::as_bytes(std::span(junk));
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
  return file;
}

/// The offsets of the segments before the first scan, and of that scan, without the first segment: there every reader
/// expects ff d8 ff.
inline std::vector<std::size_t> segments_of(const file_bytes& file) {
  std::vector<std::size_t> all;
  for (std::size_t at = 2;;) {
    if (at > 2) all.push_back(at);
    if (std::to_integer<int>(file[at + 1]) == 0xda) return all;
    at += 2 + (std::to_integer<std::size_t>(file[at + 2]) << 8) + std::to_integer<std::size_t>(file[at + 3]);
  }
}

// Gray JPEGs with any Huffman codes that a DHT segment can contain; no encoder writes most of them.
//
//   auto file = slow::coded_file({.dc = slow::random_code(d, false), .ac = slow::full_code(d, true)}, d);
//
// The data are random words of the codes, so that the file is complete if its codes are possible.
// Format: ITU-T T.81 annexes B, C and F.

/// 16 counts and the symbols. `ac` symbols are sometimes any byte, else usual ones; lengths are skewed at random.
inline std::vector<std::uint8_t> random_code(millrace::rng& d, bool ac) {
  std::vector<std::uint8_t> bytes(16);
  const unsigned share = static_cast<unsigned>(d.between(10, 70));
  const bool unusual = d.chance(0.3);
  std::uint32_t free_words = 1;
  for (std::size_t i = 0; i < 16; ++i) {
    free_words = free_words * 2 > 4'000 ? 4'000 : free_words * 2;
    const std::uint32_t limit = free_words - 1;   // the word of all ones stays free
    std::uint32_t count = limit * share / 100 + static_cast<std::uint32_t>(d.below(2));
    const auto room = static_cast<std::uint32_t>((ac ? 162 : 12) + 16 - bytes.size());
    if (count > limit) count = limit;
    if (count > room) count = room;
    bytes[i] = static_cast<std::uint8_t>(count);
    free_words -= count;
    for (std::uint32_t k = 0; k < count; ++k) {
      std::uint8_t symbol = 0;
      if (!ac) symbol = static_cast<std::uint8_t>(d.below(unusual ? 16 : 12));
      else if (unusual && d.chance(0.2)) symbol = static_cast<std::uint8_t>(d.below(256));
      else if (d.chance(0.08)) symbol = 0;
      else if (d.chance(0.05)) symbol = 0xf0;
      else symbol = static_cast<std::uint8_t>(d.below(d.chance(0.5) ? 2 : 16) * 16 + 1 +
                                              d.below(d.chance(0.7) ? 2 : 10));
      bytes.push_back(symbol);
    }
  }
  return bytes;
}

/// A code that uses all words, including that of all ones, which T.81 reserves.
inline std::vector<std::uint8_t> full_code(millrace::rng& d, bool ac) {
  std::vector<std::uint8_t> bytes(16);
  std::uint32_t free_words = 1;
  const auto last = static_cast<std::size_t>(d.between(0, ac ? 6 : 3));
  for (std::size_t i = 0; i <= last; ++i) {
    free_words *= 2;
    const auto count = i == last ? free_words : static_cast<std::uint32_t>(d.below(free_words));
    bytes[i] = static_cast<std::uint8_t>(count);
    free_words -= count;
    for (std::uint32_t k = 0; k < count; ++k)   // usual symbols, the end of the block among them
      bytes.push_back(static_cast<std::uint8_t>(ac && d.chance(0.8) ? d.below(4) << 4 | (1 + d.below(4)) : d.below(8)));
  }
  return bytes;
}

/// One bit after the other, as T.81 figure F.16 has it. Length 0: no word of the code.
inline millrace::detail::huffman_code::word find_bit_by_bit(const std::vector<std::uint8_t>& bytes,
                                                            std::uint64_t window) {
  std::uint32_t code = 0, first = 0;
  std::size_t symbol = 16;
  for (unsigned length = 1; length <= 16; ++length) {
    code = code << 1 | static_cast<std::uint32_t>(window >> (64 - length) & 1);
    first <<= 1;
    const std::uint32_t count = bytes[length - 1];
    if (code >= first && code - first < count) return {length, bytes[symbol + (code - first)]};
    first += count;
    symbol += count;
  }
  return {0, 0};
}

struct file_codes {
  std::vector<std::uint8_t> dc{}, ac{};   // 16 counts, then the symbols
};

class code_writer {
 public:
  explicit code_writer(std::vector<std::byte>& to) : to_(to) {}

  void put(std::uint32_t bits, unsigned count) {
    while (count-- > 0) {
      byte_ = byte_ << 1 | (bits >> count & 1);
      if (++bits_ < 8) continue;
      to_.push_back(static_cast<std::byte>(byte_));
      if (byte_ == 255) to_.push_back(std::byte{0});
      byte_ = bits_ = 0;
    }
  }
  void end() {
    while (bits_ != 0) put(1, 1);
  }

 private:
  std::vector<std::byte>& to_;
  unsigned byte_ = 0, bits_ = 0;
};

struct code_word {
  std::uint32_t word;
  unsigned length, symbol;
};

inline std::vector<code_word> words_of(const std::vector<std::uint8_t>& code) {
  std::vector<code_word> words;
  std::uint32_t word = 0;
  for (unsigned length = 1; length <= 16; ++length, word <<= 1)
    for (unsigned k = 0; k < code[length - 1]; ++k)
      words.push_back({word++, length, code[16 + words.size()]});
  return words;
}

/// Empty if a block could not end: the code has no word for the end.
inline std::optional<std::vector<std::byte>> coded_file(const file_codes& codes, millrace::rng& d) {
  const auto dc = words_of(codes.dc), ac = words_of(codes.ac);
  const auto end = std::find_if(ac.begin(), ac.end(), [](const code_word& w) { return w.symbol == 0; });
  if (dc.empty() || end == ac.end()) return std::nullopt;

  std::vector<std::byte> file;
  const auto add = [&](std::initializer_list<unsigned> bytes) {
    for (const unsigned b : bytes) file.push_back(static_cast<std::byte>(b));
  };
  const auto add_code = [&](unsigned kind, const std::vector<std::uint8_t>& code) {
    const auto length = static_cast<unsigned>(3 + code.size());
    add({0xff, 0xc4, length >> 8, length & 255, kind});
    for (const std::uint8_t b : code) add({b});
  };
  const auto width = static_cast<unsigned>(d.between(1, 40)), height = static_cast<unsigned>(d.between(1, 40));
  add({0xff, 0xd8, 0xff, 0xdb, 0, 67, 0});
  for (int i = 0; i < 64; ++i) add({1});
  add({0xff, 0xc0, 0, 11, 8, 0, height, 0, width, 1, 1, 0x11, 0});
  add_code(0x00, codes.dc);
  add_code(0x10, codes.ac);
  add({0xff, 0xda, 0, 8, 1, 1, 0x00, 0, 63, 0});

  code_writer data(file);
  const auto put = [&](const code_word& w, unsigned size) {
    data.put(w.word, w.length);
    data.put(static_cast<std::uint32_t>(d.bits()) & ((1U << size) - 1), size);
  };
  for (unsigned block = 0; block < (width + 7) / 8 * ((height + 7) / 8); ++block) {
    const code_word& first = dc[d.below(dc.size())];
    put(first, first.symbol & 15);
    for (unsigned k = 1; k < 64;) {
      const code_word& w = d.chance(0.2) ? *end : ac[d.below(ac.size())];
      const unsigned run = w.symbol >> 4, size = w.symbol & 15;
      if (size == 0 && run != 15) {   // libjpeg ends a block at each of these
        put(w, 0);
        break;
      }
      if (k + run > 63) continue;     // not beyond the block
      put(w, size);
      k += run + 1;
    }
  }
  data.end();
  add({0xff, 0xd9});
  return file;
}

}  // namespace slow
