// Sessions whose types are spelled out, and batches that are split into columns.
#include "../../temporary_folder.hpp"
#include "indexed_runs.hpp"
#include "quiet_sessions.hpp"

#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

namespace mr = millrace;
using namespace std::chrono_literals;

namespace {

struct example {
  std::array<std::uint8_t, 4> pixels;
  std::int32_t label;
};

example prepare(int n) {
  const auto byte = static_cast<std::uint8_t>(n);
  return {{byte, byte, byte, byte}, n};
}
const mr::session_options quiet_options{.epochs = 2, .threads = 2, .notice = mr::quiet};
constexpr mr::columns<&example::pixels, &example::label> both;

auto items() { return mr::from(numbers(24), {.seed = 3}) | mr::shuffle({.window = 24}) | mr::map(prepare); }
auto flow() { return items() | mr::batch<&example::pixels, &example::label>({.size = 8}); }

using named = mr::session<&example::pixels, &example::label>;
using named_mix = mr::session<&example::pixels, &example::label, mr::label_b<&example::label>, mr::lambda>;

/// A user's class that owns a session.
class trainer {
 public:
  explicit trainer(const mr::session_options& options) : data_(flow(), options) {}

  std::vector<std::int32_t> labels() {
    std::vector<std::int32_t> all;
    for (auto& [pixels, label] : data_) {
      for (std::size_t i = 0; i < label.size(); ++i) {
        REQUIRE(pixels.data[4 * i + 3] == label.data[i]);
        all.push_back(label.data[i]);
      }
    }
    return all;
  }

 private:
  named data_;
};

template <class Session>
std::vector<std::int32_t> labels_of(Session& run) {
  std::vector<std::int32_t> all;
  for (auto& b : run)
    for (const std::int32_t label : b.template get<&example::label>().host()) all.push_back(label);
  return all;
}
named returned() { return named{flow(), quiet_options}; }
std::vector<std::int32_t> labels_of_named(named& run) { return labels_of(run); }

std::vector<std::int32_t> expected() {
  mr::session run{flow(), quiet_options};
  return labels_of(run);
}

}  // namespace

TEST_CASE("a session is a member, a result and a parameter") {
  CHECK(expected().size() == 48);
  CHECK(trainer(quiet_options).labels() == expected());
  named run = returned();
  CHECK(labels_of_named(run) == expected());
  std::unique_ptr<named> later = std::make_unique<named>(flow(), quiet_options);
  CHECK(labels_of_named(*later) == expected());
  std::optional<named> maybe;
  maybe.emplace(flow(), quiet_options);
  *maybe = named{flow(), quiet_options};
  CHECK(labels_of_named(*maybe) == expected());
}

TEST_CASE("a session deduces its columns, and those of batch<T> are all members") {
  static_assert(std::is_same_v<decltype(mr::session{flow(), quiet_options}), named>);
  mr::session all{items() | mr::batch<example>({.size = 8}), quiet_options};
  CHECK(labels_of(all) == expected());
  mr::session by_value{items() | mr::batch(both, {.size = 8}), quiet_options};
  static_assert(std::is_same_v<decltype(by_value), named>);
  CHECK(labels_of(by_value) == expected());
  named of_all{items() | mr::batch<example>({.size = 8}), quiet_options};
  CHECK(labels_of_named(of_all) == expected());
}

TEST_CASE("the batches of batch<T> have the names, shapes and bytes of batch<members>") {
  named by_members{flow(), quiet_options};
  mr::session by_type{items() | mr::batch<example>({.size = 8}), quiet_options};
  CHECK(by_type.description() == by_members.description());
  for (auto& b : by_type) {
    auto other = by_members.next();
    REQUIRE(b.position() == other.position());
    const auto pixels = b.get<&example::pixels>();
    const auto same = other.get<0>();
    static_assert(std::is_same_v<decltype(pixels), decltype(same)>);
    CHECK(std::string(pixels.name) == same.name);
    CHECK(pixels.shape == same.shape);
    CHECK(std::equal(pixels.data, pixels.data + pixels.size(), same.data));
  }
}

TEST_CASE("a batch is split into its columns") {
  mr::session run{flow(), quiet_options};
  using batch = decltype(run)::batch;
  static_assert(std::tuple_size_v<batch> == 2);
  for (auto& b : run) {
    auto& [pixels, label] = b;
    CHECK(pixels.data == b.get<&example::pixels>().data);
    CHECK(label.data == b.get<1>().data);
    const auto [copied_pixels, copied_label] = b.columns();
    CHECK(copied_pixels.data == pixels.data);
    CHECK(copied_label.shape == label.shape);
  }
  mr::session epochs{flow(), quiet_options};
  std::size_t rows = 0;
  for (std::uint64_t e = 0; e < 2; ++e)
    for (auto& [pixels, label] : epochs.epoch(e)) rows += pixels.shape[0] + label.shape[0];
  CHECK(rows == 96);
}

TEST_CASE("a session over mixed rows is named by four columns") {
  const auto mixed = [] { return flow() | mr::mixup(both, {.alpha = 0.4}); };
  static_assert(std::is_same_v<decltype(mr::session{mixed(), quiet_options}), named_mix>);
  named_mix run{mixed(), quiet_options};
  mr::session of_all{items() | mr::batch<example>({.size = 8}) |
                     mr::mixup<&example::pixels, &example::label>({.alpha = 0.4}), quiet_options};
  std::size_t mixed_rows = 0;
  for (auto& b : run) {
    auto& [pixels, label_a, label_b, lambda] = b;
    CHECK(label_a.data == b.label_a().data);
    CHECK(label_b.data == b.label_b().data);
    CHECK(lambda.data == b.lambda().data);
    auto other = of_all.next();
    const auto other_pixels = other.get<&example::pixels>();
    CHECK(std::equal(pixels.data, pixels.data + pixels.size(), other_pixels.data));
    CHECK(std::equal(lambda.data, lambda.data + lambda.size(), other.lambda().data));
    CHECK(std::equal(label_b.data, label_b.data + label_b.size(), other.label_b().data));
    const auto [pixels_again, label_a_again, label_b_again, lambda_again] = b.columns();
    CHECK(lambda_again.data == lambda.data);
    for (const float l : lambda.host()) mixed_rows += l != 1;
  }
  CHECK(mixed_rows > 20);
}

TEST_CASE("calls that need an index throw for other sources") {
  const temporary_folder folder;
  const std::string file = folder / "a.txt";
  std::ofstream(file) << "one\ntwo\nthree\n";
  struct length {
    std::int32_t bytes;
  };
  mr::session run{mr::lines(file) | mr::map([](std::string_view line) {
                    return length{static_cast<std::int32_t>(line.size())};
                  }) | mr::batch<length>({.size = 3}), quiet_options};
  CHECK_THROWS_WITH_AS(run.locate(0, 0), doctest::Contains("needs a source with an index"), mr::setup_error);
  CHECK_THROWS_WITH_AS(run.shuffle_quality(), doctest::Contains("requires a single source with an index"),
      mr::setup_error);
  named indexed{flow(), quiet_options};
  CHECK(indexed.locate(0, 0).position == 0);
}

// Members of a session for trainers in another language: waits with a limit, epochs, slots, and the parts of a batch.
namespace {

struct row {
  std::int32_t number;
};

/// Two shards of eight rows.
struct counted_rows {
  using item = row;
  struct reader {
    std::int32_t at, end;
    std::optional<row> next() { return at < end ? std::optional(row{at++}) : std::nullopt; }
  };
  std::size_t shards() const { return 2; }
  reader open(std::size_t shard, std::uint64_t) const {
    return {static_cast<std::int32_t>(8 * shard), static_cast<std::int32_t>(8 * shard + 8)};
  }
};

using batch_text = std::pair<std::vector<std::int32_t>, std::string>;

/// The numbers and the resume text of all batches of a session.
template <class Session>
std::vector<batch_text> batches_of(Session& run) {
  std::vector<batch_text> all;
  for (auto& b : run) {
    const auto numbers = b.template get<0>().host();
    all.push_back({{numbers.begin(), numbers.end()}, b.resume_text()});
  }
  return all;
}

std::vector<std::vector<std::int32_t>> numbers_of(const std::vector<batch_text>& all, std::size_t first = 0) {
  std::vector<std::vector<std::int32_t>> numbers;
  for (std::size_t i = first; i < all.size(); ++i) numbers.push_back(all[i].first);
  return numbers;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("wait_for() ends without a batch while a callable blocks, and the time counts as wait, not as step") {
  std::atomic<bool> open{false};
  mr::session run{mr::from(first_numbers(8)) | mr::map([&](int n) {
                    while (n >= 4 && !open) std::this_thread::sleep_for(1ms);
                    return row{n};
                  }) | mr::batch<&row::number>({.size = 4}),
                  {.threads = 1, .notice = mr::quiet}};
  while (!run.wait_for(1h)) {
  }
  CHECK(run.next().get<0>()[0] == 0);
  CHECK_FALSE(run.wait_for(0ns));
  const auto step_ns = run.stats().step_ns;
  CHECK_FALSE(run.wait_for(5ms));
  CHECK(run.stats().step_ns == step_ns);   // the step ended with the first wait
  open = true;
  while (!run.wait_for(1h)) {
  }
  CHECK(run.next().get<0>()[0] == 4);
  CHECK(run.stats().step_ns == step_ns);
  CHECK(run.stats().wait_ns >= 5'000'000);
  while (!run.wait_for(1h)) {
  }
  CHECK_FALSE(run.next());
  CHECK(run.wait_for(1h));   // the run is over
}

TEST_CASE("wait_for() of an epoch returns true at its end, and without workers at once") {
  mr::session run{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                      mr::batch<&row::number>({.size = 4}),
                  {.epochs = 2, .threads = 1, .notice = mr::quiet}};
  std::size_t batches = 0;
  for (auto& b : run.epoch(0)) {
    batches += b.size() / 4;
    while (!run.wait_for(1h, 0)) {
    }
  }
  CHECK(batches == 2);
  mr::session alone{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4}),
                    {.threads = 0, .notice = mr::quiet}};
  CHECK(alone.wait_for(1h));
}

TEST_CASE("wait_for() returns true while the caller has leased all slots, because next() then throws") {
  mr::session run{mr::from(first_numbers(64)) | mr::map([](int n) { return row{n}; }) |
                      mr::batch<&row::number>({.size = 4}) | mr::prefetch({.batches = 1}),
                  {.threads = 1, .notice = mr::quiet}};
  const auto first = run.next(), second = run.next();
  CHECK(run.wait_for(1h));
  CHECK_THROWS_AS(run.next(), mr::setup_error);
}

TEST_CASE("extra_slots adds slots that the caller may keep") {
  for (const std::size_t extra : {0U, 3U}) {
    mr::session run{mr::from(first_numbers(64)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4}) | mr::prefetch({.batches = 2}),
                    {.threads = 1, .extra_slots = extra, .notice = mr::quiet}};
    CHECK(run.slots() == 3 + extra);
  }
}

TEST_CASE("epoch_batches() is known with an index and with a fixed number, and unknown for a pass over a stream") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder);
  const auto flow = [&](bool drop_last) {
    return mr::shards(shards, {.seed = 7}) | mr::map(indexed_runs::prepare) |
           mr::batch<&indexed_runs::example::label>({.size = 24, .drop_last = drop_last});
  };
  CHECK(mr::session(flow(true), {.threads = 0, .notice = mr::quiet}).epoch_batches() == 8U);
  CHECK(mr::session(flow(false), {.threads = 0, .notice = mr::quiet}).epoch_batches() == 9U);
  CHECK(mr::session(flow(true), {.epoch_batches = mr::endless, .threads = 0, .notice = mr::quiet}).epoch_batches() ==
        mr::endless);
  const auto stream = [] { return mr::from(counted_rows{}) | mr::batch<&row::number>({.size = 4}); };
  CHECK_FALSE(mr::session(stream(), {.threads = 0, .notice = mr::quiet}).epoch_batches());
  CHECK(mr::session(stream(), {.epoch_batches = 3, .threads = 0, .notice = mr::quiet}).epoch_batches() == 3U);
}

TEST_CASE("a run that starts in a later epoch delivers the same batches as a run from the beginning") {
  const temporary_folder folder;
  const std::string shards = indexed_runs::write_shards(folder);
  const auto indexed = [&] {
    return mr::shards(shards, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::map(indexed_runs::prepare) |
           mr::batch<&indexed_runs::example::label>({.size = 24});
  };
  const auto streamed = [] {
    return mr::from(counted_rows{}) | mr::shuffle({.window = 3}) | mr::batch<&row::number>({.size = 4});
  };
  const auto check = [](const auto& flow, std::size_t epoch_batches) {
    mr::session full{flow(), {.epochs = 3, .threads = 1, .notice = mr::quiet}};
    const auto all = batches_of(full);
    REQUIRE(all.size() == 3 * epoch_batches);
    for (const unsigned threads : {0U, 2U}) {
      mr::session late{flow(), {.epochs = 3, .threads = threads, .notice = mr::quiet, .first_epoch = 2}};
      const auto rest = batches_of(late);
      CHECK(numbers_of(rest) == numbers_of(all, 2 * epoch_batches));
      mr::session resumed{flow(),
                          {.epochs = 3, .threads = threads, .notice = mr::quiet, .resume = rest.front().second}};
      CHECK(numbers_of(batches_of(resumed)) == numbers_of(all, 2 * epoch_batches + 1));
    }
  };
  check(indexed, 8);
  check(streamed, 4);
}

TEST_CASE("first_epoch is refused where only reading leads to it, with a resume point, and after the last epoch") {
  const auto flow = [] { return mr::from(counted_rows{}) | mr::batch<&row::number>({.size = 4}); };
  const auto session = [&](const mr::session_options& o) { mr::session{flow(), o}; };
  CHECK_THROWS_WITH_AS(
      session({.epochs = 3, .epoch_batches = 3, .threads = 0, .notice = mr::quiet, .first_epoch = 1}),
      doctest::Contains("cannot skip earlier epochs: got session_options::first_epoch = "), mr::setup_error);
  CHECK_THROWS_WITH_AS(session({.epochs = 3, .threads = 0, .notice = mr::quiet, .first_epoch = 3}),
                       doctest::Contains("got 3, expected less than the 3 epochs"), mr::setup_error);
  CHECK_THROWS_WITH_AS(
      session({.epochs = 3, .threads = 0, .notice = mr::quiet, .resume = "millrace version=6", .first_epoch = 1}),
      doctest::Contains("got two starts of a run"), mr::setup_error);
}

TEST_CASE("a batch knows whether it has keys and flags") {
  for (const bool has : {false, true}) {
    mr::session run{mr::from(first_numbers(8)) | mr::map([](int n) { return row{n}; }) |
                        mr::batch<&row::number>({.size = 4, .pad_last = has, .keys = has}),
                    {.threads = 0, .notice = mr::quiet}};
    auto b = run.next();
    CHECK(b.has_keys() == has);
    CHECK(b.has_flags() == has);
    b.release();
    CHECK_THROWS_AS(static_cast<void>(b.has_keys()), mr::setup_error);
    CHECK_THROWS_AS(static_cast<void>(b.has_flags()), mr::setup_error);
  }
}
