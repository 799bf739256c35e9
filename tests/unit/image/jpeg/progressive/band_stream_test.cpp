#include "../../jpeg_recipes.hpp"

#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// The AC scans of a progressive JPEG one bit at a time, as in ITU-T T.81, G.3 to G.8.
namespace {

using zigzag_block = std::array<int, 64>;

class slow_band {
 public:
  slow_band(const std::vector<std::uint8_t>& code, const std::vector<std::uint8_t>& bytes, unsigned first,
            unsigned last, unsigned low)
      : code_(code), bytes_(bytes), first_(first), last_(last), low_(low) {}

  std::size_t bit = 0;
  unsigned blocks_passed = 0;

  /// Returns false for input that libjpeg warns of, and for coefficients beyond the band or beyond 10 bits.
  bool first_bits(zigzag_block& block) {
    if (blocks_passed > 0) return --blocks_passed, true;
    for (unsigned k = first_; k <= last_; ++k) {
      const int byte = symbol();
      if (byte < 0) return false;
      const unsigned run = static_cast<unsigned>(byte) >> 4, size = static_cast<unsigned>(byte) & 15;
      if (size == 0 && run < 15) return blocks_passed = (1U << run) + take(run) - 1, true;
      if (size + low_ > 10) return false;
      k += run;
      if (k > last_) return false;
      if (size == 0) continue;
      const int bits = static_cast<int>(take(size));
      block[k] = (bits >> (size - 1) != 0 ? bits : bits - (1 << size) + 1) * (1 << low_);
    }
    return true;
  }

  bool refinement(zigzag_block& block) {
    unsigned k = first_;
    if (blocks_passed == 0) {
      for (; k <= last_; ++k) {
        const int byte = symbol();
        if (byte < 0) return false;
        unsigned run = static_cast<unsigned>(byte) >> 4;
        const unsigned size = static_cast<unsigned>(byte) & 15;
        if (size == 0 && run < 15) {
          blocks_passed = (1U << run) + take(run);
          break;
        }
        if (size > 1 || (size == 1 && low_ > 9)) return false;
        const int fresh = size == 0 ? 0 : take(1) != 0 ? 1 << low_ : -(1 << low_);
        for (;; ++k) {
          if (k > last_) return false;
          if (block[k] != 0) correct(block[k]);
          else if (run-- == 0) break;
        }
        block[k] = fresh;
      }
      if (k > last_) return true;
    }
    for (; k <= last_; ++k)
      if (block[k] != 0) correct(block[k]);
    --blocks_passed;
    return true;
  }

 private:
  unsigned take(unsigned count) {
    unsigned bits = 0;
    for (; count > 0; --count, ++bit) bits = bits << 1 | (bytes_[bit / 8] >> (7 - bit % 8) & 1U);
    return bits;
  }
  int symbol() {
    const std::size_t before = bit;
    std::uint64_t window = std::uint64_t{take(16)} << 48;
    const auto word = slow::find_bit_by_bit(code_, window);
    bit = before + word.length;
    return word.length == 0 ? -1 : static_cast<int>(word.symbol);
  }
  void correct(int& value) {
    if (take(1) != 0) value += value < 0 ? -(1 << low_) : 1 << low_;
  }

  const std::vector<std::uint8_t>& code_;
  const std::vector<std::uint8_t>& bytes_;
  unsigned first_, last_, low_;
};

}  // namespace

namespace mr = millrace;
using namespace millrace::detail;

namespace {

constexpr std::size_t blocks = 40;

/// Symbols of a refinement: runs, one new coefficient, ends of the band with all lengths.
std::vector<std::uint8_t> refining_code(mr::rng& d) {
  auto code = d.chance(0.5) ? slow::random_code(d, true) : slow::full_code(d, true);
  const bool unusual = d.chance(0.3);
  for (std::size_t i = 16; i < code.size(); ++i) {
    if (unusual && d.chance(0.05)) continue;
    const auto run = static_cast<unsigned>(d.below(d.chance(0.6) ? 4 : 16));
    code[i] = static_cast<std::uint8_t>(run << 4 | (d.chance(0.75) ? 1 : 0));
  }
  return code;
}

struct band_memory {
  std::array<coefficient_set, blocks> sets{};
  alignas(64) std::array<std::int16_t, blocks / 2 * pair_coefficients> pairs{};

  explicit band_memory(const std::vector<zigzag_block>& from) {
    for (std::size_t i = 0; i < blocks; ++i)
      for (unsigned k = 0; k < 64; ++k) {
        if (k > 0 && from[i][k] != 0) sets[i] |= set_of(k);
        run().block(i)[coefficient_order[k]] = static_cast<std::int16_t>(from[i][k]);
      }
  }
  block_run run() { return {.sets = sets.data(), .pairs = pairs.data(), .first = 0, .count = blocks}; }
};

/// Without the spare space between pairs.
std::vector<zigzag_block> blocks_of(band_memory& from) {
  std::vector<zigzag_block> all(blocks);
  for (std::size_t i = 0; i < blocks; ++i)
    for (unsigned k = 0; k < 64; ++k) all[i][k] = from.run().block(i)[coefficient_order[k]];
  return all;
}

}  // namespace

TEST_CASE("sets equal their words") {
  mr::rng d({.seed = 61});
  for (int i = 0; i < 3'000; ++i) {
    const coefficient_set set = d.bits() & (d.chance(0.5) ? d.bits() : ~std::uint64_t{0});
    const std::uint64_t bits = d.bits() & d.bits();
    std::vector<unsigned> members;
    for (unsigned k = 0; k < 64; ++k)
      if ((set & set_of(k)) != 0) members.push_back(k);
    CHECK(size_of(set) == members.size());
    CHECK(first_of(set) == (set == 0 ? 64 : members[0]));
    coefficient_set selected = 0;
    for (std::size_t m = 0; m < members.size(); ++m)
      if ((bits >> (members.size() - 1 - m) & 1) != 0) selected |= set_of(members[m]);
    for (unsigned n = 0; n < members.size(); ++n) {
      const coefficient_set place = set_of(members[members.size() - 1 - n]);
      CHECK(portable_coefficient_sets::nth_last(set, n) == place);
#if defined __x86_64__ || defined __aarch64__
      if (band_loops::has_fast_code()) CHECK(deposit_coefficient_sets::nth_last(set, n) == place);
#endif
    }
    CHECK(portable_coefficient_sets::spread(bits, set) == selected);
#if defined __x86_64__ || defined __aarch64__
    if (band_loops::has_fast_code()) {
      CHECK(deposit_coefficient_sets::spread(bits, set) == selected);
    }
#endif
    const auto first = static_cast<unsigned>(d.between(1, 63));
    const auto last = static_cast<unsigned>(d.between(first, 63));
    const coefficient_set band = band_of(first, last);
    for (unsigned k = 0; k < 64; ++k) {
      CHECK(((band & set_of(k)) != 0) == (k >= first && k <= last));
      CHECK(((before(set, set_of(first)) & set_of(k)) != 0) == (k < first && (set & set_of(k)) != 0));
    }
  }
}

TEST_CASE("bands are decoded as if one bit at a time, whatever the code and the bits") {
  mr::rng d({.seed = 62});
  auto table = std::make_unique<band_table>();
  std::size_t valid = 0, odd = 0;
  for (int i = 0; i < 6'000; ++i) {
    const bool refines = d.chance(0.6);
    const auto code = refines ? refining_code(d) : slow::random_code(d, true);
    const auto first = static_cast<unsigned>(d.chance(0.6) ? 1 : d.between(1, 63));
    const auto last = static_cast<unsigned>(d.chance(0.6) ? 63 : d.between(first, 63));
    const auto low = static_cast<unsigned>(d.below(d.chance(0.8) ? 3 : 14));
    if (!table->build(code, {refines ? band_kind::refining_ac : band_kind::first_ac, low})) continue;
    std::vector<zigzag_block> expected(blocks);
    if (refines)
      for (auto& block : expected) {
        const double share = d.uniform() * d.uniform();
        for (unsigned k = 0; k < 64; ++k)
          if (d.chance(share)) block[k] = static_cast<int>(d.between(-3, 3)) * (2 << low) % 1024;
      }
    std::vector<std::uint8_t> bytes(16'384);
    const bool few_ones = d.chance(0.4);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(few_ones ? d.bits() & d.bits() : d.bits());
    band_memory before(expected);
    slow_band slowly(code, bytes, first, last, low);
    slowly.blocks_passed = d.chance(0.2) ? static_cast<unsigned>(d.below(30)) : 0;
    const std::uint32_t passed = slowly.blocks_passed;
    bool possible = true;
    for (auto& block : expected)
      possible = possible && (refines ? slowly.refinement(block) : slowly.first_bits(block));
    (possible ? valid : odd)++;
    for (const auto& loops : {band_loops::best(), band_loops::portable()})
      for (const bool stored : {true, false}) {
        band_memory got = before;
        band_stream stream{.table = table.get(), .first = first, .last = last, .low = low};
        stream.bit = reinterpret_cast<std::uintptr_t>(bytes.data()) * 8;
        stream.end_bit = stream.bit + bytes.size() * 8;
        stream.blocks_passed = passed;
        CAPTURE(i);
        CHECK(loops.run(refines, stored, stream, got.run()) == possible);
        if (!possible) continue;
        CHECK(stream.bit == reinterpret_cast<std::uintptr_t>(bytes.data()) * 8 + slowly.bit);
        CHECK(stream.blocks_passed == slowly.blocks_passed);
        band_memory after(expected);
        CHECK(got.sets == after.sets);
        CHECK(blocks_of(got) == blocks_of(stored ? after : before));
      }
  }
  CHECK(valid > 500);
  CHECK(odd > 500);
}

TEST_CASE("a DC code has no symbol above 15") {
  auto table = std::make_unique<band_table>();
  for (const unsigned symbol : {0u, 15u, 16u, 0x59u, 0xffu}) {
    const std::vector<std::uint8_t> code{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                         static_cast<std::uint8_t>(symbol)};
    CHECK(table->build(code, {band_kind::dc, 0}) == (symbol <= 15));
  }
}

TEST_CASE("data that end within a block are detected after it") {
  const std::vector<std::uint8_t> code{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01};   // a one, of 2 bits
  auto table = std::make_unique<band_table>();
  REQUIRE(table->build(code, {band_kind::first_ac, 0}));
  const std::vector<std::uint8_t> bytes(256);
  band_memory got{std::vector<zigzag_block>(blocks)};
  for (const int missing_bits : {0, 1}) {
    band_stream stream{.table = table.get()};
    stream.bit = reinterpret_cast<std::uintptr_t>(bytes.data()) * 8;
    stream.end_bit = stream.bit + 2 * 63 * 3 - static_cast<unsigned>(missing_bits);
    block_run run = got.run();
    run.count = 3;
    CHECK(band_loops::best().run(false, true, stream, run) == (missing_bits == 0));
  }
}
