#include <millrace/image/jpeg/baseline/block_loops.hpp>
#include <millrace/image/jpeg/baseline/component_tables.hpp>
#include <millrace/image/jpeg/baseline/scan_header.hpp>
#include <millrace/image/jpeg/baseline/unstuffer.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>

#include "../../jpeg_recipes.hpp"
#include "../../slow_planes.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;
namespace detail = millrace::detail;

namespace {

std::string refusal_of(const std::vector<std::byte>& file) {
  detail::scan_header header;
  return refusal_name(detail::read_scan_header(file, header));
}

/// The begin of the payload of the first segment with that marker.
std::size_t payload_of(const std::vector<std::byte>& file, unsigned marker) {
  for (std::size_t i = 2; i + 3 < file.size();) {
    if (std::to_integer<unsigned>(file[i + 1]) == marker) return i + 4;
    i += 2 + (std::to_integer<std::size_t>(file[i + 2]) << 8 | std::to_integer<std::size_t>(file[i + 3]));
  }
  return 0;
}

std::vector<std::byte> with(std::vector<std::byte> file, unsigned marker, std::size_t offset, unsigned value) {
  const std::size_t at = payload_of(file, marker);
  REQUIRE(at > 0);
  file[at + offset] = static_cast<std::byte>(value);
  return file;
}

}  // namespace

TEST_CASE("a header contains the settings of libjpeg") {
  const auto file = slow::make_file(slow::photo(37, 53, 3, 1), {.horizontal = 2, .vertical = 1, .restart_interval = 5});
  detail::scan_header h;
  CHECK(detail::read_scan_header(file, h) == mr::jpeg_refusal::none);
  CHECK(h.width == 53);
  CHECK(h.height == 37);
  CHECK(h.components == 3);
  CHECK(h.component[0].horizontal == 2);
  CHECK(h.component[0].vertical == 1);
  CHECK(h.component[1].horizontal == 1);
  CHECK(h.restart_interval == 5);
  CHECK(h.data_offset_bytes == payload_of(file, 0xda) + 10);
  CHECK(h.component[0].quantiser != h.component[1].quantiser);
  CHECK(h.component[1].quantiser == h.component[2].quantiser);
}

TEST_CASE("each kind of file that is left to libjpeg has its reason") {
  const auto color = slow::make_file(slow::photo(20, 20, 3, 2), {});
  CHECK(refusal_of(color) == "none");
  CHECK(refusal_of({}) == "not a JPEG");
  CHECK(refusal_of(std::vector<std::byte>(100)) == "not a JPEG");
  CHECK(refusal_of(slow::make_file(slow::photo(20, 20, 3, 2), {.progressive = true})) == "progressive");
  CHECK(refusal_of(slow::make_file(slow::photo(20, 20, 3, 2), {.horizontal = 4, .vertical = 1})) == "sampling");
  CHECK(refusal_of(mr::encode_jpeg(slow::photo(20, 20, 3, 2), {.keep_rgb = true})) == "color space");
  CHECK(refusal_of(slow::make_jpeg(slow::photo(20, 20, 3, 2), {.arithmetic = true})) == "arithmetic or lossless");
  CHECK(refusal_of(with(color, 0xc0, 0, 12)) == "precision");
  CHECK(refusal_of(with(color, 0xc0, 2, 0)) != "none");          // 20 rows become 0
  CHECK(refusal_of(with(color, 0xc0, 5, 4)) == "components");
  CHECK(refusal_of(with(color, 0xc0, 9, 1)) == "unusual header");   // two components of one name
  CHECK(refusal_of(with(color, 0xc0, 8, 9)) == "unusual header");
  CHECK(refusal_of(with(color, 0xc0, 8, 3)) == "tables");        // a quantiser that was never sent
  CHECK(refusal_of(with(color, 0xdb, 0, 0x10)) == "precision");
  CHECK(refusal_of(with(color, 0xc4, 0, 0x20)) == "tables");
  CHECK(refusal_of(with(color, 0xda, 0, 1)) == "several scans");
  CHECK(refusal_of(with(color, 0xda, 2, 0x33)) == "tables");
  CHECK(refusal_of(with(color, 0xda, 8, 62)) == "unusual header");
  CHECK(refusal_of(with(color, 0xe0, 5, 2)) == "unusual header");   // JFIF 2
  // Every length that ends within the header.
  for (std::size_t n = 0; n < payload_of(color, 0xda) + 10; ++n)
    CHECK(refusal_of({color.begin(), color.begin() + static_cast<std::ptrdiff_t>(n)}) == "not a JPEG");
}

TEST_CASE("stuffed zeros are removed as by going byte by byte") {
  mr::rng d({.seed = 41});
  detail::unstuffed_memory memory;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::uint8_t> file(d.below(i < 400 ? 90 : 30'000)), expected;
    for (auto& byte : file) byte = d.chance(0.15) ? 0xff : d.chance(0.15) ? 0 : static_cast<std::uint8_t>(d.below(256));
    for (std::size_t k = 0; k + 1 < file.size(); ++k)   // usually not a marker
      if (file[k] == 0xff && !d.chance(i % 3 == 0 ? 0.02 : 0)) file[++k] = 0;
    std::size_t at = 0;
    bool marker = false;
    while (at < file.size()) {
      if (file[at] != 0xff) {
        expected.push_back(file[at++]);
        continue;
      }
      if (at + 1 == file.size()) break;
      marker = file[at + 1] != 0 && file[at + 1] != 0xff;
      if (file[at + 1] != 0) break;
      expected.push_back(0xff);
      at += 2;
    }
    // In a heap block of exact size, for AddressSanitizer.
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[file.size()]);
    std::copy(file.begin(), file.end(), exact.get());
    detail::unstuffer u;
    u.begin({exact.get(), file.size()}, 0, memory);
    const std::size_t step = d.below(5'000) + 1;
    for (std::size_t from = 0; !u.ended(); from += step) u.reach(u.begin_of_interval() + from, step);
    CHECK(std::vector<std::uint8_t>(u.begin_of_interval(), u.end()) == expected);
    CHECK(u.at_marker() == marker);
    if (marker && file[at + 1] == 0xd3) CHECK(u.next_interval(3));
    else CHECK(!u.next_interval(3));
  }
}

namespace {

bool same(const detail::coefficient_entry& a, const detail::coefficient_entry& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

constexpr detail::coefficient_entry slow_one = detail::unpacked(detail::slow_entry);

/// An entry computed by decoding its index, symbol after symbol. `dc`: the first symbol is a DC difference.
detail::coefficient_entry entry_by_decoding(const detail::huffman_code& first_code, const detail::huffman_code& ac,
                                            unsigned index, bool dc) {
  const std::uint64_t window = std::uint64_t{index} << 53;
  const auto [length, byte] = first_code.find(window);
  if (length == 0 || length > 11) return slow_one;
  const detail::ac_symbol s(byte);
  const unsigned size = dc ? byte : s.size, advance = dc ? 1 : s.advance(), total = length + size;
  if (dc ? byte > 11 : !s.usual()) return slow_one;
  if (size > 0 && length == 11) return slow_one;
  detail::entry_fields f{.bits = total, .advance = advance, .shift = 64 - total};
  if (!dc && s.ends()) return detail::unpacked(detail::packed_entry(f));
  const auto magnitude = static_cast<unsigned>(size == 0 ? 0 : window << length >> (64 - size));
  if (total > 11) {
    f.magnitude = size;
    f.bias = magnitude >> (size - 1) != 0 ? 0 : 1 - (1 << size);
    return detail::unpacked(detail::packed_entry(f));
  }
  const int value = detail::extended(magnitude, size);
  f.bias = value;
  if (value < -128 || value > 127) return detail::unpacked(detail::packed_entry(f));
  const auto [next_length, next_byte] = ac.find(window << total);
  const detail::ac_symbol next(next_byte);
  const unsigned rest = 11 - total;
  if (next_length == 0 || next_length > rest || !next.usual() || (next.size > 0 && next_length == rest))
    return detail::unpacked(detail::packed_entry(f));
  f = {.bits = total + next_length + next.size, .advance = advance + next.advance(),
       .shift = 64 - total - next_length - next.size, .magnitude = next.size, .bias = 0, .value = value,
       .run = advance - 1};
  const std::uint64_t sign = window << (total + next_length) >> 63;
  if (next.size > 0 && sign == 0) f.bias = 1 - (1 << next.size);
  return detail::unpacked(detail::packed_entry(f));
}

detail::skip_entry skip_by_decoding(const detail::huffman_code& dc, const detail::huffman_code& ac, unsigned index,
                                    bool with_dc) {
  const std::uint64_t window = std::uint64_t{index} << 52;
  struct step {
    unsigned bits, advance;
  };
  std::vector<step> steps;
  unsigned used = 0;
  for (bool first = with_dc;; first = false) {
    const auto [length, byte] = (first ? dc : ac).find(used < 64 ? window << used : 0);
    const detail::ac_symbol s(byte);
    if (length == 0 || used + length > 12) break;
    if (first ? byte > 11 || length + byte > 22 : !s.usual()) break;
    steps.push_back({length + (first ? byte : s.size), first ? 1 : s.advance()});
    used += steps.back().bits;
    if ((!first && s.ends()) || used >= 12) break;
  }
  // Symbols are chosen from the last one to the first; combinations that lead too far are dropped.
  unsigned bits = 0, advance = 0;
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    const bool too_far = ((advance + at->advance) & 64) != 0;
    bits = too_far ? at->bits : bits + at->bits;
    advance = too_far ? at->advance : advance + at->advance;
  }
  if (steps.empty()) return {0, detail::slow_advance};
  return {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(advance)};
}

}  // namespace

TEST_CASE("a symbol is found as if going bit by bit") {
  mr::rng d({.seed = 11});
  for (int i = 0; i < 200; ++i) {
    const auto bytes = slow::random_code(d, i % 2 == 0);
    detail::huffman_code code;
    REQUIRE(code.assign(bytes));
    for (int k = 0; k < 300; ++k) {
      const std::uint64_t window = d.bits() | (d.chance(0.1) ? 0xffff000000000000 : 0);
      const auto got = code.find(window), expected = slow::find_bit_by_bit(bytes, window);
      CHECK(got.length == expected.length);
      if (expected.length > 0) CHECK(got.symbol == expected.symbol);
    }
  }
}

TEST_CASE("a code with more words than possible is impossible, and so is one with the word of all ones") {
  detail::huffman_code code;
  for (std::size_t last = 0; last < 8; ++last) {
    std::vector<std::uint8_t> bytes(16 + 256);
    for (std::size_t i = 0; i < last; ++i) bytes[i] = 1;
    bytes[last] = 1;   // 0, 10, 110, ... and one that is not all ones
    CHECK(code.assign(bytes));
    bytes[last] = 2;
    CHECK(!code.assign(bytes));
    bytes[last] = 3;
    CHECK(!code.assign(bytes));
  }
}

TEST_CASE("tables that are built in runs equal those that decode each index") {
  mr::rng d({.seed = 12});
  auto tables = std::make_unique<detail::component_tables>();
  std::size_t two_symbols = 0, ends = 0, slow_ones = 0, far = 0;
  for (int i = 0; i < 120; ++i) {
    const auto dc_bytes = slow::random_code(d, false), ac_bytes = slow::random_code(d, true);
    REQUIRE(tables->build(dc_bytes, ac_bytes));
    std::size_t wrong = 0;
    for (unsigned index = 0; index < detail::coefficient_entries; ++index) {
      const auto ac = entry_by_decoding(tables->ac_code, tables->ac_code, index, false);
      wrong += !same(tables->ac[index], ac);
      wrong += !same(tables->dc[index], entry_by_decoding(tables->dc_code, tables->ac_code, index, true));
      two_symbols += ac.value != 0;
      ends += ac.advance >= detail::ends_block && ac.bits > 0;
      slow_ones += ac.bits == 0;
    }
    for (unsigned index = 0; index < detail::skip_entries; ++index) {
      const auto ac = skip_by_decoding(tables->dc_code, tables->ac_code, index, false);
      const auto dc = skip_by_decoding(tables->dc_code, tables->ac_code, index, true);
      wrong += tables->ac_skip[index].bits != ac.bits || tables->ac_skip[index].advance != ac.advance;
      wrong += tables->dc_skip[index].bits != dc.bits || tables->dc_skip[index].advance != dc.advance;
      CHECK_MESSAGE((ac.advance & 127) <= 64, "an advance that could pass for a block's end");
      far += (ac.advance & 127) > 32;
    }
    for (unsigned index = 0; index < tables->difference.size(); ++index) {
      const std::uint64_t window = std::uint64_t{index} << 55;
      const auto& e = tables->difference[index];
      const auto [length, size] = tables->dc_code.find(window);
      const bool fits = length > 0 && length <= 9 && size <= 11 && (size == 0 || length < 9);
      wrong += fits != (e.bits != 0);
      if (fits && size > 0) {
        const bool positive = (window << length >> 63) != 0;
        wrong += e.bits != length + size || e.bias != (positive ? 0 : 1 - (1 << size));
      }
    }
    CHECK(wrong == 0);
  }
  CHECK(two_symbols > 1'000);
  CHECK(ends > 1'000);
  CHECK(slow_ones > 1'000);
  CHECK(far > 100);
}

TEST_CASE("tables are found again by their bytes, and stay complete when they leave the store") {
  mr::rng d({.seed = 13});
  detail::component_table_store store;
  const auto dc = slow::random_code(d, false), ac = slow::random_code(d, true);
  const auto first = store.get(dc, ac);
  REQUIRE(first);
  CHECK(store.get(dc, ac) == first);
  const auto bits_before = first->ac[77].bits;
  for (int i = 0; i < 40; ++i) CHECK(store.get(slow::random_code(d, false), slow::random_code(d, true)));
  CHECK(store.size() == 16);
  CHECK(first->ac[77].bits == bits_before);
  CHECK(store.get(dc, ac) != first);   // it had left the store
  std::vector<std::uint8_t> impossible(16 + 3);
  impossible[0] = 3;
  CHECK(!store.get(impossible, ac));
  std::vector<std::uint8_t> large_difference(16 + 1);
  large_difference[0] = 1;
  large_difference[16] = 16;
  CHECK(!store.get(large_difference, ac));
}

TEST_CASE("tables in reused memory equal those in fresh memory, and no memory is allocated") {
  mr::rng d({.seed = 8});
  detail::component_table_store store;
  std::set<const void*> places;
  for (int i = 0; i < 200; ++i) {
    const auto dc = slow::random_code(d, false), ac = slow::random_code(d, true);
    const auto got = store.get(dc, ac);
    REQUIRE(got);
    places.insert(got.get());
    const auto fresh = std::make_shared<detail::component_tables>();
    REQUIRE(fresh->build(dc, ac));
    CHECK(std::memcmp(&got->dc, &fresh->dc, sizeof fresh->dc) == 0);
    CHECK(std::memcmp(&got->ac, &fresh->ac, sizeof fresh->ac) == 0);
    CHECK(std::memcmp(&got->dc_skip, &fresh->dc_skip, sizeof fresh->dc_skip) == 0);
    CHECK(std::memcmp(&got->ac_skip, &fresh->ac_skip, sizeof fresh->ac_skip) == 0);
    CHECK(std::memcmp(&got->difference, &fresh->difference, sizeof fresh->difference) == 0);
  }
  CHECK(places.size() == 16);
}

namespace {

/// Random bits and a segment of random tables. The decoded data are mostly nonsense, which is a good test.
struct segment {
  static constexpr std::size_t blocks = 24, data_bytes = blocks * 209 + 64;

  std::array<std::unique_ptr<detail::component_tables>, 2> tables;
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(data_bytes);
  std::vector<std::int16_t> coefficients = std::vector<std::int16_t>(blocks / 2 * detail::pair_coefficients);
  std::vector<detail::block_slot> slots = std::vector<detail::block_slot>(blocks + 1);
  detail::block_stream stream;
  bool store;

  segment(mr::rng& d, bool stored, std::uint64_t seed) : store(stored) {
    mr::rng bits({.seed = seed});
    for (auto& t : tables) {
      t = std::make_unique<detail::component_tables>();
      CHECK(t->build(slow::random_code(d, false), slow::random_code(d, true)));
    }
    for (auto& byte : data) byte = static_cast<std::uint8_t>(bits.bits());
  }

  void begin(const detail::stop_table& stop, std::size_t first_bit) {
    coefficients.assign(coefficients.size(), 0);
    for (std::size_t i = 0; i <= blocks; ++i) {
      const auto& own = *tables[i % 3 == 0];
      const auto& next = *tables[(i + 1) % 3 == 0];
      auto* to = coefficients.data() + i % blocks / 2 * detail::pair_coefficients + i % 2 * detail::right_block;
      if (store) slots[i] = {own.ac.data(), next.dc.data(), to, &own, 0};
      else slots[i] = {own.ac_skip.data(), next.dc_skip.data(), to, &own, 0};
    }
    stream = {};
    stream.bit = reinterpret_cast<std::uintptr_t>(data.data()) * 8 + first_bit;
    stream.begin_segment(slots.data(), blocks, store, stop);
  }

  /// The relevant state, without unused values.
  std::vector<std::int64_t> outcome() const {
    std::vector<std::int64_t> all{static_cast<std::int64_t>(stream.bit), stream.invalid, stream.k};
    for (std::size_t i = 0; i < coefficients.size(); ++i)
      if (i % detail::pair_coefficients < 128) all.push_back(coefficients[i]);
    if (!store)
      for (const auto& s : slots) all.push_back(static_cast<std::int64_t>(s.begin_bit));
    return all;
  }
};

}  // namespace

TEST_CASE("coefficients are stored in zigzag order, two blocks side by side") {
  CHECK(detail::coefficient_order[0] == 0);
  CHECK(detail::coefficient_order[1] == 1);
  CHECK(detail::coefficient_order[2] == 16);
  CHECK(detail::coefficient_order[3] == 32);
  CHECK(detail::coefficient_order[4] == 17);
  CHECK(detail::coefficient_order[5] == 2);
  CHECK(detail::coefficient_order[35] == 16 * 7 + 0);
  CHECK(detail::coefficient_order[63] == 16 * 7 + 7);
  for (std::size_t k = 64; k < 256; ++k) CHECK(detail::coefficient_order[k] == 128);
  CHECK(reinterpret_cast<std::uintptr_t>(detail::coefficient_order.data()) % 256 == 0);   // the loops rely on it
}

TEST_CASE("the loops equal decoding symbol by symbol, whatever the bits and the partner") {
  mr::rng d({.seed = 21});
  const detail::stop_table stop;
  std::size_t invalid = 0;
  for (int i = 0; i < 300; ++i) {
    segment a(d, d.chance(0.5), d.bits()), b(d, d.chance(0.5), d.bits());
    const std::size_t at_a = d.below(8), at_b = d.below(8);
    for (auto* s : {&a, &b}) {
      s->begin(stop, s == &a ? at_a : at_b);
      while (!s->stream.at_end()) s->stream.decode_symbol();
      invalid += s->stream.invalid;
    }
    const auto expected_a = a.outcome(), expected_b = b.outcome();
    for (const auto& loops : {detail::block_loops::portable(), detail::block_loops::best()}) {
      a.begin(stop, at_a);
      loops.run(a.stream);
      CHECK(a.outcome() == expected_a);
      a.begin(stop, at_a);
      b.begin(stop, at_b);
      loops.run(a.stream, b.stream);
      CHECK((a.stream.at_end() || b.stream.at_end()));
      for (auto* s : {&a, &b})
        if (!s->stream.at_end()) loops.run(s->stream);
      CHECK((a.stream.at_end() && b.stream.at_end()));
      CHECK(a.outcome() == expected_a);
      CHECK(b.outcome() == expected_b);
    }
  }
  CHECK(invalid > 20);
}
