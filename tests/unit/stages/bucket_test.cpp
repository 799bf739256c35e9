// Ragged columns and length buckets in runs: every sample once and complete, within the budget, with any number of
// threads and on any device; resumed after any batch the rest is the same as without the interruption.
#include "../../copying_device.hpp"
#include "../../eventually.hpp"
#include "../read/run/replay_flows.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/to_device.hpp>

#include <map>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::uint32_t padding = 999;
constexpr std::int64_t too_long = 1540;   // the number of a sample that is an error,
std::atomic<bool> mended{false};          // or was one

struct sentence {
  mr::ragged<std::uint32_t> words;
  std::int64_t number;
  mr::ragged<std::int16_t> sound;
};

std::vector<std::uint32_t> words_of(std::int64_t number) {
  mr::rng random({.seed = 3, .epoch = 0, .sample = static_cast<std::uint64_t>(number), .stage = 0});
  const std::size_t count = random.below(random.chance(0.8) ? 12 : 65);
  std::vector<std::uint32_t> words(number == too_long && !mended ? 65 : count);
  for (auto& w : words) w = static_cast<std::uint32_t>(random.bits());
  return words;
}
sentence prepare(int number) {
  return {mr::ragged(words_of(number), {.max_length = 64, .padding = padding}), number,
          mr::ragged(std::vector<std::int16_t>(static_cast<std::size_t>(number % 5), 7),
                     {.max_length = 4, .padding = -1, .fixed = true})};
}

struct settings {
  std::vector<int> shards{};
  mr::bucket_options buckets{.boundaries = {4, 12, 64}, .tokens = 130, .flush_every = 60};
  std::size_t size = 16;
  mr::device device = mr::host_device();
};
auto flow_of(const settings& s) {
  return mr::from(numbers_in_shards{s.shards}, {.seed = 4}) | mr::shuffle({.window = 7}) | mr::map(prepare) |
         mr::bucket<&sentence::words>(s.buckets) |
         mr::batch<&sentence::words, &sentence::number, &sentence::sound>({.size = s.size, .keys = true}) |
         mr::prefetch({.batches = 2}) | mr::to_device({.device = s.device});
}

struct trace {
  std::vector<std::vector<std::int64_t>> batches{};
  std::vector<std::string> positions{};
  std::vector<std::uint64_t> epochs{}, steps{};
  std::uint64_t copied_bytes = 0, slot_bytes = 0;
  std::uint64_t digest = 0;   // of every byte of every batch, in order
};

template <class View>
std::uint64_t digest_of(const View& view) {
  return mr::detail::digest_bytes(std::as_bytes(view.host()));
}

/// A number's position for keys: its part, and its index in that.
std::string name_of(const settings& s, std::int64_t number) {
  std::size_t shard = 0;
  while (number >= s.shards[shard]) number -= s.shards[shard++];
  return (s.shards.size() > 1 ? std::to_string(shard) + ":" : "") + std::to_string(number);
}

/// Checks every element of every batch, and collects the numbers of the samples.
trace run(const settings& s, const mr::session_options& options, std::size_t most = ~std::size_t{0}) {
  const stall_watchdog watchdog;
  trace t;
  mr::session session{flow_of(s), options};
  for (auto& b : session) {
    const auto [words, numbers, sound] = b.columns();
    const std::size_t longest = words.values.shape[1];
    REQUIRE(b.size() > 0);
    REQUIRE(b.size() <= s.size);
    REQUIRE(b.size() * longest <= s.buckets.tokens);
    REQUIRE(sound.values.shape[1] == 4);
    std::size_t max_words = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::int64_t number = numbers.host()[i];
      REQUIRE(b.keys()[i] == name_of(s, number));
      auto row = words_of(number);
      max_words = std::max(max_words, row.size());
      REQUIRE(words.lengths.host()[i] == static_cast<std::int32_t>(row.size()));
      row.resize(longest, padding);
      const auto actual = words.values.host().subspan(i * longest, longest);
      REQUIRE(std::equal(row.begin(), row.end(), actual.begin(), actual.end()));
      REQUIRE(sound.lengths.host()[i] == number % 5);
      for (std::int64_t j = 0; j < 4; ++j)
        REQUIRE(sound.values.host()[i * 4 + static_cast<std::size_t>(j)] == (j < number % 5 ? 7 : -1));
    }
    REQUIRE(longest == max_words);
    for (const std::uint64_t of_column : {digest_of(words.values), digest_of(words.lengths), digest_of(numbers),
                                          digest_of(sound.values), digest_of(sound.lengths)})
      t.digest = mr::detail::combine_keys(t.digest, of_column);
    t.batches.emplace_back(numbers.host().begin(), numbers.host().end());
    t.positions.push_back(mr::to_text(b.position()));
    REQUIRE(t.positions.back().size() < 300);
    t.epochs.push_back(b.epoch());
    t.steps.push_back(b.step());
    if (options.world.value_or(mr::single_process).size == 1) CHECK(b.global_size() == b.size());
    else CHECK_THROWS_WITH_AS(b.global_size(), doctest::Contains("Sum size() over the ranks"), mr::setup_error);
    if (t.batches.size() == most) break;
  }
  for (const auto& stage : session.statistics().stages)
    if (stage.kind == mr::stage_kind::copy) t.copied_bytes = stage.bytes;
  t.slot_bytes = session.stats().slot_bytes;
  return t;
}

void check_rest(const trace& rest, const trace& full, std::size_t cut) {
  const auto rest_of = [&](const auto& all) {
    return std::remove_cvref_t<decltype(all)>(all.begin() + static_cast<std::ptrdiff_t>(cut) + 1, all.end());
  };
  REQUIRE(rest.batches == rest_of(full.batches));
  REQUIRE(rest.positions == rest_of(full.positions));
  REQUIRE(rest.epochs == rest_of(full.epochs));
  REQUIRE(rest.steps == rest_of(full.steps));
}

settings random_shards(unsigned seed, std::size_t shards) {
  settings s;
  mr::rng random({.seed = seed});
  for (std::size_t i = 0; i < shards; ++i) s.shards.push_back(static_cast<int>(random.below(60)));
  return s;
}

}  // namespace

TEST_CASE("exact passes: every sample once in each, with any threads, resumed after every batch") {
  for (const unsigned seed : {1U, 2U}) {
    settings s = random_shards(seed, 9);
    if (seed == 2) s.buckets = {.boundaries = {64}, .tokens = 1000, .flush_every = 25};
    const std::int64_t count = std::accumulate(s.shards.begin(), s.shards.end(), 0);
    const trace full = run(s, quiet(0, 2));
    std::vector<std::map<std::int64_t, int>> passes(2);
    for (std::size_t i = 0; i < full.batches.size(); ++i)
      for (const std::int64_t number : full.batches[i]) ++passes.at(full.epochs[i])[number];
    for (const auto& pass : passes) {
      REQUIRE(static_cast<std::int64_t>(pass.size()) == count);
      for (const auto& [number, times] : pass) REQUIRE(times == 1);
    }
    // The same with every compiler and flag.
    CHECK(full.digest == (seed == 1 ? 14467178885270263404U : 5598304384227333394U));
    s.device = copying_device();
    for (const int threads : {1, 3}) {
      const trace again = run(s, quiet(threads, 2));
      REQUIRE(again.batches == full.batches);
      REQUIRE(again.positions == full.positions);
      REQUIRE(again.digest == full.digest);
      CHECK(again.copied_bytes > 0);
      CHECK(again.copied_bytes < again.batches.size() * again.slot_bytes * 4 / 5);   // the used part, not the slot
    }
    std::size_t later = 0;
    for (std::size_t cut = 0; cut < full.batches.size(); cut += stride(4)) {
      CAPTURE(full.positions[cut]);
      mr::session_options options = quiet(static_cast<int>(cut % 3), 2);
      options.resume = full.positions[cut];
      s.device = cut % 2 ? copying_device() : mr::host_device();
      const mr::replay_point from = mr::parse_position(full.positions[cut]).replay;
      later += from.ordinal > 0 && from.shard > 0;
      if (cut + 1 < full.batches.size()) check_rest(run(s, options), full, cut);
      else CHECK_THROWS_WITH_AS(run(s, options), doctest::Contains("the run is over"), mr::setup_error);
    }
    CHECK(later > full.batches.size() / stride(4) / 4);   // it does not read from the beginning
  }
}

TEST_CASE("ranks and fixed epochs: as many batches on each, every sample once in a pass, resumed after every batch") {
  settings s = random_shards(3, 12);
  for (const std::size_t world_size : {1U, 2U, 3U}) {
    std::map<std::int64_t, int> counts;
    for (std::size_t rank = 0; rank < world_size; ++rank) {
      mr::session_options options = quiet(2, 3);
      options.world = {.rank = rank, .size = world_size};
      options.epoch_batches = 7;
      options.lanes = 6;
      const trace full = run(s, options);
      REQUIRE(full.batches.size() == 21);
      for (std::size_t i = 0; i < 21; ++i) REQUIRE(full.epochs[i] == i / 7);
      options.threads = 0;
      REQUIRE(run(s, options).positions == full.positions);
      for (std::size_t cut = 0; cut < 20; cut += world_size * stride(3)) {
        CAPTURE(full.positions[cut]);
        options.threads = static_cast<int>(cut % 3);
        options.resume = full.positions[cut];
        check_rest(run(s, options), full, cut);
      }
      options.resume = full.positions[20];
      CHECK_THROWS_WITH_AS(run(s, options), doctest::Contains("the run is over"), mr::setup_error);
      // No lane has finished its parts by then.
      for (std::size_t i = 0; i < 3; ++i)
        for (const std::int64_t number : full.batches[i]) ++counts[number];
    }
    for (const auto& [number, times] : counts) REQUIRE(times == 1);
  }
}

TEST_CASE("each bucket is a batch when it is full, and its remainder moves to the longer ones") {
  using stage = mr::detail::bucketing<sentence, &sentence::words>;
  const mr::bucket_options o{.boundaries = {4, 12, 64}, .tokens = 130, .flush_every = 50};
  const std::size_t rows[] = {16, 10, 2};   // of min(16, 130 / boundary)
  stage bucketing(o, {.max_rows = 16, .max_bytes = std::size_t{1} << 30});
  std::vector<mr::detail::sample<sentence>> out;
  std::vector<std::vector<std::int64_t>> expected, waiting(3);
  const auto flush = [&] {
    std::vector<std::int64_t> left;
    for (std::size_t b = 0; b < 3; ++b) {
      left.insert(left.end(), waiting[b].begin(), waiting[b].end());
      waiting[b].clear();
      for (; left.size() >= rows[b]; left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rows[b])))
        expected.emplace_back(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rows[b]));
    }
    if (!left.empty()) expected.push_back(left);
  };
  for (int n = 0; n < 333; ++n) {
    if (n > 0 && n % 50 == 0) flush();
    const std::size_t length = words_of(n).size(), b = length <= 4 ? 0 : length <= 12 ? 1 : 2;
    waiting[b].push_back(n);
    if (waiting[b].size() == rows[b]) expected.push_back(std::exchange(waiting[b], {}));
    mr::detail::sample<sentence> s;
    s.item = prepare(n);
    s.ordinal = static_cast<std::uint64_t>(n);
    bucketing.push(std::move(s), out);
  }
  flush();
  bucketing.end_epoch(out);
  std::vector<std::vector<std::int64_t>> got(1);
  std::int64_t samples = 0;
  for (const auto& s : out) {
    if (s.what == mr::detail::sample<sentence>::kind::batch_end) got.emplace_back();
    else {
      got.back().push_back(s.item->number);
      REQUIRE(s.ordinal == static_cast<std::uint64_t>(s.item->number / 50 * 50));
      ++samples;
    }
  }
  got.pop_back();
  CHECK(got == expected);
  CHECK(samples == 333);
}

TEST_CASE("the samples in the buckets are delivered after a failure, once the data are repaired") {
  const settings s{.shards = {1600}};
  mended = true;
  const trace full = run(s, quiet(2));
  mended = false;
  std::size_t batches = 0, samples = 0;
  mr::session_options options = quiet(2);
  const auto train = [&] {
    mr::session session{flow_of(s), options};
    for (auto& b : session) {
      const auto numbers = b.get<&sentence::number>().host();
      REQUIRE(std::ranges::equal(numbers, full.batches.at(batches++)));
      samples += b.size();
      options.resume = mr::to_text(b.position());
    }
  };
  CHECK_THROWS_AS(train(), mr::data_error);
  CHECK(samples < too_long - 7);   // some of those before it are in buckets
  mended = true;
  const trace rest = run(s, options);
  mended = false;
  check_rest(rest, full, batches - 1);
}

TEST_CASE("errors name the sample, follow all batches before them, and no run stalls") {
  settings s{.shards = {1600}, .buckets = {.boundaries = {64}, .tokens = 6400, .flush_every = 1'000'000}, .size = 100};
  for (const int threads : {0, 2}) {
    const stall_watchdog watchdog;
    mr::session session{flow_of(s), quiet(threads)};
    std::size_t batches = 0;
    const auto train = [&] {
      for (auto& b : session) {
        batches += b.size() == 100;
        // Meanwhile all free space fills up, including the space that the error needs.
        if (batches == 11) std::this_thread::sleep_for(std::chrono::milliseconds(threads * 100));
      }
    };
    CHECK_THROWS_WITH_AS(train(), doctest::Contains("got length 65, expected at most max_length 64"), mr::data_error);
    CHECK(batches == 15);
  }
  s.buckets = {.boundaries = {32}, .tokens = 3200, .flush_every = 1'000'000};
  CHECK_THROWS_WITH_AS(run(s, quiet(1)), doctest::Contains("but the last boundary of bucket() is 32"),
                       mr::data_error);
  for (const mr::bucket_options& o : std::vector<mr::bucket_options>{
           {.boundaries = {}, .tokens = 9}, {.boundaries = {0, 4}, .tokens = 9}, {.boundaries = {4, 4}, .tokens = 9},
           {.boundaries = {4, 10}, .tokens = 9}, {.boundaries = {4}, .tokens = 9, .flush_every = 0}})
    CHECK_THROWS_AS(mr::bucket<&sentence::words>(o), mr::setup_error);
}
