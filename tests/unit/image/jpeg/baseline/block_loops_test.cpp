#include <millrace/image/jpeg/baseline/block_loops.hpp>

#include "random_code.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

namespace mr = millrace;
namespace detail = millrace::detail;

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
