#include <millrace/image/jpeg/baseline/component_tables.hpp>

#include "random_code.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <set>
#include <vector>

namespace mr = millrace;
namespace detail = millrace::detail;

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
