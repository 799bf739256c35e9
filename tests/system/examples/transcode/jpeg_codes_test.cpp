#include <transcode/jpeg_codes.hpp>
#include <transcode/jpeg_transcoder.hpp>

#include "../../../unit/image/jpeg_recipes.hpp"

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/component_tables.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using transcode::jpeg_codes, transcode::jpeg_codes_options, transcode::jpeg_symbol_counts,
      transcode::jpeg_transcoder, transcode::transcode_jpeg;

jpeg_symbol_counts drawn_counts(mr::rng& random) {
  jpeg_symbol_counts counts;
  const auto draw = [&] { return random.chance(0.3) ? 0 : random.below(std::uint64_t{1} << random.below(40)); };
  for (std::size_t t = 0; t < counts.tables; ++t) {
    for (auto& n : counts.dc[t]) n = draw();
    for (unsigned s = 0; s < counts.ac[t].size(); ++s)
      if (s == 0 || s == 0xf0 || ((s & 15) >= 1 && (s & 15) <= 10)) counts.ac[t][s] = draw();
  }
  return counts;
}

struct longest_and_space {
  unsigned longest = 0;
  std::uint32_t space = 0;   // of 2^16
};

longest_and_space measure(std::span<const std::uint8_t> code) {
  longest_and_space result;
  for (unsigned length = 1; length <= 16; ++length) {
    if (code[length - 1] != 0) result.longest = length;
    result.space += std::uint32_t{code[length - 1]} << (16 - length);
  }
  return result;
}

std::set<unsigned> symbols_of(std::span<const std::uint8_t> code) { return {code.begin() + 16, code.end()}; }

}  // namespace

TEST_CASE("every symbol of the baseline alphabet has a word within the limits, and no word is all ones") {
  std::set<unsigned> dc, ac{0x00, 0xf0};
  for (unsigned size = 0; size <= 11; ++size) dc.insert(size);
  for (unsigned run = 0; run < 16; ++run)
    for (unsigned size = 1; size <= 10; ++size) ac.insert(run << 4 | size);
  REQUIRE(dc.size() == 12);
  REQUIRE(ac.size() == 162);
  mr::rng random({.seed = 1});
  for (int i = 0; i < 200; ++i) {
    const jpeg_codes_options limits{.longest_dc = static_cast<unsigned>(random.between(4, 16)),
                                        .longest_ac = static_cast<unsigned>(random.between(8, 16)),
                                        .rare = i % 2 ? 0.0 : 0.01 * random.uniform()};
    const jpeg_codes codes(i == 0 ? jpeg_symbol_counts() : drawn_counts(random), limits);
    for (const std::size_t table : {0U, 1U}) {
      CHECK(codes.dc(table).size() == 16 + dc.size());
      CHECK(codes.ac(table).size() == 16 + ac.size());
      CHECK(symbols_of(codes.dc(table)) == dc);
      CHECK(symbols_of(codes.ac(table)) == ac);
      const auto of_dc = measure(codes.dc(table)), of_ac = measure(codes.ac(table));
      CHECK(of_dc.longest <= limits.longest_dc);
      CHECK(of_ac.longest <= (limits.rare == 0 ? limits.longest_ac : 16));
      // All but one of the longest words exist.
      CHECK(of_dc.space == (1U << 16) - (1U << (16 - of_dc.longest)));
      CHECK(of_ac.space == (1U << 16) - (1U << (16 - of_ac.longest)));
      mr::detail::component_tables tables;
      CHECK(tables.build(codes.dc(table), codes.ac(table)));
    }
    CHECK(jpeg_codes::from_text(codes.text()) == codes);
  }
}

TEST_CASE("words have at most 10 bits, and those of DC 8; only rare AC symbols have longer ones") {
  mr::rng random({.seed = 2});
  std::size_t long_words = 0;
  for (int i = 0; i < 20; ++i) {
    const auto counts = drawn_counts(random);
    const jpeg_codes codes(counts), all_short(counts, {.rare = 0});
    for (const std::size_t table : {0U, 1U}) {
      CHECK(measure(codes.dc(table)).longest <= 8);
      CHECK(measure(all_short.ac(table)).longest <= 10);
      std::uint64_t all = 0;
      for (const auto n : counts.ac[table]) all += n;
      const auto code = codes.ac(table);
      for (std::size_t length = 1, at = 16; length <= 16; ++length)
        for (unsigned words = code[length - 1]; words > 0; --words, ++at)
          if (length > 10) {
            CHECK(counts.ac[table][code[at]] < all / 10'000 + 1);
            ++long_words;
          }
    }
  }
  CHECK(long_words > 100);
}

TEST_CASE("more frequent symbols have no longer words, and luma and chroma have their own") {
  jpeg_symbol_counts counts;
  counts.dc[0][3] = counts.ac[0][0x21] = counts.dc[1][7] = counts.ac[1][0xf0] = 1'000'000;
  const jpeg_codes codes(counts);
  CHECK(codes.dc(0)[16] == 3);
  CHECK(codes.ac(0)[16] == 0x21);
  CHECK(codes.dc(1)[16] == 7);
  CHECK(codes.ac(1)[16] == 0xf0);
  CHECK(codes.ac(1)[0] == 1);   // a word of one bit
}

TEST_CASE("a text that is not a pair of codes is refused") {
  mr::rng random({.seed = 3});
  const std::string good = jpeg_codes(drawn_counts(random)).text();
  const auto refused = [](const std::string& text) {
    try {
      (void)jpeg_codes::from_text(text);
      return false;
    } catch (const mr::setup_error& e) {
      CHECK(std::string(e.what()).find("does not contain the codes") != std::string::npos);
      return true;
    }
  };
  CHECK_FALSE(refused(good));
  CHECK(refused(""));
  CHECK(refused(good + "0"));
  CHECK(refused(good + "00"));
  for (std::size_t size = 0; size < good.size(); ++size) CHECK(refused(good.substr(0, size)));
  int accepted = 0;
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const char c : {'0', '1', '7', 'f', 'g', 'A', '-'}) {
      std::string other = good;
      other[i] = c;
      if (other != good && !refused(other)) ++accepted;
    }
  CHECK(accepted == 0);   // a symbol twice, one too few or too many, no such symbol
  // As many words as symbols, but more than exist.
  CHECK(refused("0c" + std::string(30, '0') + good.substr(32)));
}

TEST_CASE("impossible limits are refused") {
  for (const jpeg_codes_options limits :
       {jpeg_codes_options{.longest_dc = 3}, jpeg_codes_options{.longest_dc = 17},
        jpeg_codes_options{.longest_ac = 7}, jpeg_codes_options{.longest_ac = 17},
        jpeg_codes_options{.rare = -0.1}, jpeg_codes_options{.rare = 1.1}})
    CHECK_THROWS_AS(jpeg_codes({}, limits), mr::setup_error);
}

TEST_CASE("the built-in decoder builds its tables once for a set with shared codes") {
  mr::rng random({.seed = 4});
  std::vector<std::vector<std::byte>> files;
  jpeg_symbol_counts counts;
  for (int i = 0; i < 24; ++i) {
    const bool gray = i % 6 == 0;
    const auto picture = slow::photo(40 + random.below(40), 40 + random.below(60), gray ? 1 : 3, random.bits());
    files.push_back(slow::make_jpeg(picture,
                                    {.stored = gray ? JCS_GRAYSCALE : JCS_YCbCr,
                                     .quality = static_cast<int>(random.between(30, 98)), .optimize_tables = true}));
    jpeg_transcoder(files.back()).count_symbols(counts);
  }
  CHECK(counts.pictures == files.size());
  const jpeg_codes codes(counts);
  mr::detail::component_table_store store, store_of_own_codes;
  const auto look_up = [](mr::detail::component_table_store& in, std::span<const std::byte> file) {
    mr::detail::scan_header header;
    REQUIRE(mr::detail::read_scan_header(file, header) == mr::jpeg_refusal::none);
    for (int c = 0; c < header.components; ++c) {
      const auto& component = header.component[static_cast<std::size_t>(c)];
      CHECK(in.get(component.dc, component.ac));
    }
  };
  for (const auto& file : files) {
    look_up(store, transcode_jpeg(file, {.codes = &codes}));
    look_up(store_of_own_codes, file);
  }
  CHECK(store.size() == 2);
  CHECK(store_of_own_codes.size() == 16);   // the capacity of the store
}
