#include "../../../unit/image/jpeg_recipes.hpp"

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/image/jpeg/baseline/component_tables.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>

#include <doctest/doctest.h>
#include <transcode/jpeg_codes.hpp>
#include <transcode/jpeg_transcoder.hpp>
#include <transcode/package_merge.hpp>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <vector>

namespace mr = millrace;
using transcode::package_merge;

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

namespace {

using weight_list = std::vector<std::uint64_t>;
using length_list = std::vector<std::uint8_t>;

length_list merged(const weight_list& weights, const length_list& longest) {
  length_list lengths(weights.size());
  package_merge(weights, longest, lengths);
  return lengths;
}
length_list merged(const weight_list& weights, unsigned longest) {
  return merged(weights, length_list(weights.size(), static_cast<std::uint8_t>(longest)));
}

std::uint64_t cost(const weight_list& weights, const length_list& lengths) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * lengths[i];
  return sum;
}

/// The sum of 2^-length, in units of 2^-16.
std::uint64_t space(const length_list& lengths) {
  std::uint64_t sum = 0;
  for (const unsigned length : lengths) sum += std::uint64_t{1} << (16 - length);
  return sum;
}

/// The lowest cost of all valid lists of lengths, by exhaustive search.
std::uint64_t least_cost(const weight_list& weights, const length_list& longest) {
  std::uint64_t least = ~std::uint64_t{0};
  const std::function<void(std::size_t, std::uint64_t, std::uint64_t)> place = [&](std::size_t at, std::uint64_t used,
                                                                                  std::uint64_t sum) {
    if (used > std::uint64_t{1} << 16) return;
    if (at == weights.size()) {
      least = std::min(least, sum);
      return;
    }
    for (unsigned length = 1; length <= longest[at]; ++length)
      place(at + 1, used + (std::uint64_t{1} << (16 - length)), sum + length * weights[at]);
  };
  place(0, 0, 0);
  return least;
}

/// The cost of Huffman's own code, without a limit.
std::uint64_t huffman_cost(const weight_list& weights) {
  std::priority_queue<std::uint64_t, weight_list, std::greater<>> heap(std::greater<>{}, weights);
  std::uint64_t sum = 0;
  while (heap.size() > 1) {
    std::uint64_t both = heap.top();
    heap.pop();
    both += heap.top();
    heap.pop();
    heap.push(both);
    sum += both;
  }
  return sum;
}

weight_list drawn_weights(std::size_t symbols, mr::rng& random) {
  weight_list weights(symbols);
  for (auto& w : weights) w = random.chance(0.2) ? 0 : random.below(std::uint64_t{1} << random.below(20));
  return weights;
}

}  // namespace

TEST_CASE("limited codes of small alphabets cost as little as any") {
  mr::rng random({.seed = 1});
  for (int i = 0; i < 300; ++i) {
    const std::size_t symbols = 2 + random.below(5);
    const weight_list weights = drawn_weights(symbols, random);
    for (unsigned longest = 1; longest <= 5; ++longest) {
      if (std::size_t{1} << longest < symbols) continue;
      const auto lengths = merged(weights, longest);
      CHECK(cost(weights, lengths) == least_cost(weights, length_list(symbols, static_cast<std::uint8_t>(longest))));
      CHECK(space(lengths) == std::uint64_t{1} << 16);
    }
  }
}

TEST_CASE("longer words for light symbols cost as little as any") {
  mr::rng random({.seed = 4});
  for (int i = 0; i < 400; ++i) {
    const std::size_t symbols = 3 + random.below(4);
    const weight_list weights = drawn_weights(symbols, random);
    weight_list sorted = weights;
    std::sort(sorted.begin(), sorted.end());
    const std::uint64_t threshold = sorted[random.below(symbols)];
    const auto shorter = static_cast<std::uint8_t>(random.between(2, 3));
    const auto longer = static_cast<std::uint8_t>(random.between(shorter, 6));
    length_list longest;
    for (const auto w : weights) longest.push_back(w < threshold ? longer : shorter);
    if (space(longest) > std::uint64_t{1} << 16) continue;
    const auto lengths = merged(weights, longest);
    CHECK(cost(weights, lengths) == least_cost(weights, longest));
    CHECK(space(lengths) == std::uint64_t{1} << 16);
    for (std::size_t s = 0; s < symbols; ++s) CHECK(lengths[s] <= longest[s]);
  }
}

TEST_CASE("a limit that does not bind has the cost of Huffman's code") {
  mr::rng random({.seed = 2});
  for (int i = 0; i < 50; ++i) {
    weight_list weights(2 + random.below(200));
    for (auto& w : weights) w = 1 + random.below(50);   // no word needs more than 16 bits
    CHECK(cost(weights, merged(weights, 16)) == huffman_cost(weights));
  }
  // Fibonacci numbers produce the longest words: 15 bits for 16 symbols.
  weight_list fibonacci{1, 1};
  while (fibonacci.size() < 16) fibonacci.push_back(fibonacci.end()[-1] + fibonacci.end()[-2]);
  const auto lengths = merged(fibonacci, 16);
  CHECK(*std::max_element(lengths.begin(), lengths.end()) == 15);
  CHECK(cost(fibonacci, lengths) == huffman_cost(fibonacci));
}

TEST_CASE("lengths respect limits, all words are used, and rarer symbols have no shorter words") {
  mr::rng random({.seed = 3});
  for (int i = 0; i < 100; ++i) {
    const std::size_t symbols = 2 + random.below(255);
    const weight_list weights = drawn_weights(symbols, random);
    std::uint64_t shorter_limit = ~std::uint64_t{0};
    for (unsigned longest = 1; longest <= 16; ++longest) {
      if (std::size_t{1} << longest < symbols) continue;
      const auto lengths = merged(weights, longest);
      CHECK(*std::max_element(lengths.begin(), lengths.end()) <= longest);
      CHECK(*std::min_element(lengths.begin(), lengths.end()) >= 1);
      CHECK(space(lengths) == std::uint64_t{1} << 16);
      CHECK(cost(weights, lengths) <= shorter_limit);
      shorter_limit = cost(weights, lengths);
      bool ordered = true;
      for (std::size_t a = 0; a < symbols; ++a)
        for (std::size_t b = 0; b < symbols; ++b) {
          ordered = ordered && (weights[a] <= weights[b] || lengths[a] <= lengths[b]);
          ordered = ordered && (weights[a] != weights[b] || a >= b || lengths[a] <= lengths[b]);
        }
      CHECK(ordered);
      CHECK(merged(weights, longest) == lengths);
    }
  }
}

TEST_CASE("the examples of the header, and codes without a choice") {
  CHECK(merged({5, 1, 1, 9}, 2) == length_list{2, 2, 2, 2});
  CHECK(merged({5, 1, 1, 9}, 3) == length_list{2, 3, 3, 1});
  CHECK(merged({0, 0}, 1) == length_list{1, 1});
  CHECK(merged({7, 0}, 16) == length_list{1, 1});
  CHECK(merged(weight_list(256, 1), 8) == length_list(256, 8));
}
