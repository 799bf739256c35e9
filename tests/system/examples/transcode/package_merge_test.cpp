#include <transcode/package_merge.hpp>

#include <millrace/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

namespace mr = millrace;

namespace {

using transcode::package_merge;

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
