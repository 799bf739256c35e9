// The segments that a list of stages becomes: their kinds and order, workers, limits, seeds, names and budgets.
#include "../../eventually.hpp"

#include <millrace/item/column/columns.hpp>
#include <millrace/run/memory_budget.hpp>
#include <millrace/run/pipeline_builder.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/pack.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace mr = millrace;
using mr::detail::replay_start;
using mr::detail::replay_start_of;
using mr::detail::stage_list;

namespace {

struct row {
  std::int64_t number = 0;
};
/// n rows of n; their number is known before.
struct copies {
  using output = row;
  std::size_t max_outputs(const row& r) const { return static_cast<std::size_t>(r.number); }
  void push(row r, auto& emit) const {
    for (std::int64_t i = 0; i < r.number; ++i) emit(r);
  }
};
/// Emits the row before, and the last one at the end of a pass or never.
struct delayed {
  using output = row;
  std::optional<row> previous{};
  std::size_t max_outputs(const row&) const { return 1; }
  void push(row r, auto& emit) {
    if (previous) emit(*previous);
    previous = r;
  }
};
struct delayed_to_end : delayed {
  void finish(auto& emit) {
    if (previous) emit(*std::exchange(previous, std::nullopt));
  }
};

row row_of(int number) { return {number}; }
row next_row(row r) { return {r.number + 1}; }
row with_draw(row r, mr::rng& random) { return {r.number + static_cast<std::int64_t>(random.below(1'000'000))}; }
bool is_even(const row& r) { return r.number % 2 == 0; }

inline stage_list<> list_of() { return {}; }
template <class First, class... Rest>
stage_list<First, Rest...> list_of(First first, Rest... rest) {
  return {std::move(first), list_of(std::move(rest)...)};
}

/// The segments of some stages between a map that creates rows and a batch.
template <class... Stages>
struct pipeline {
  using options = mr::detail::pipeline_builder_options;
  static constexpr std::size_t slots = 3;

  explicit pipeline(options o, mr::batch_options b, Stages... stages)
      : batch(b),
        builder(o, ring),
        in(builder.template build<int>(
            list_of(mr::map(row_of), std::move(stages)..., mr::batch<&row::number>(b)))) {
    for (auto* node : builder.nodes()) node->start();
  }
  ~pipeline() {
    for (auto* node : builder.nodes()) node->stop();
    for (auto* node : builder.nodes()) node->join();
  }

  std::vector<std::string> names() const {
    mr::flow_statistics f;
    for (const auto* node : builder.nodes()) node->add_to(f, 0);
    std::vector<std::string> all;
    for (const auto& s : f.stages) all.push_back(s.name + " " + std::to_string(s.concurrency));
    return all;
  }

  bool advance() {
    const auto nodes = builder.nodes();
    return std::any_of(nodes.rbegin(), nodes.rend(), [](auto* node) { return node->advance(); });
  }
  /// Puts numbers from 0 on until the segments accept no other one, but at most `count`.
  int put(int count) {
    for (int n = 0; n < count; ++n) {
      while (!in.can_accept())
        if (!advance()) return n;
      in.put({.item = n, .id = static_cast<std::uint64_t>(n), .ordinal = static_cast<std::uint64_t>(n),
              .origin = names_of_samples.make("a.tar", std::to_string(n))});
      in.publish();
    }
    return count;
  }
  /// Ends the pass and the run. Returns the numbers of all batches, with -1 after each batch.
  std::vector<std::int64_t> finish() {
    in.end_epoch();
    in.finish(nullptr);
    in.publish();
    while (advance()) {
    }
    std::uint64_t position = 0;
    while (!builder.last().make_early(position++)) {
    }
    memory.resize(slots * builder.last().batch_bytes());
    mr::detail::batch_ring::options o{.rows = batch.size, .keys = batch.keys};
    for (std::size_t i = 0; i < slots; ++i) o.memory.push_back(memory.data() + i * builder.last().batch_bytes());
    ring.start(o);
    builder.last().open_slots();
    std::vector<std::int64_t> all;
    for (std::uint64_t number = 0;; ++number) {
      while (advance()) {
      }
      const auto got = ring.take(number);
      if (got.what != mr::detail::batch_ring::outcome::ready) return all;
      if (got.batch.error) std::rethrow_exception(got.batch.error);
      const auto* const numbers = reinterpret_cast<const std::int64_t*>(got.batch.data);
      all.insert(all.end(), numbers, numbers + got.batch.rows);
      all.push_back(-1);
      for (std::size_t i = 0; batch.keys && i < got.batch.rows; ++i) keys += std::string(got.batch.keys[i]) + " ";
      ring.free(got.batch.slot);
      builder.last().open_slots();
    }
  }
  std::vector<std::int64_t> run(int count) {
    REQUIRE(put(count) == count);
    return finish();
  }
  /// Like run(), for a run that fails: returns the text of the error.
  std::string error_of(int count) {
    try {
      run(count);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "no error";
  }

  const mr::batch_options batch;
  mr::detail::sample_names names_of_samples;
  std::vector<std::byte> memory;
  std::string keys;
  mr::detail::batch_ring ring;
  mr::detail::pipeline_builder<mr::detail::columns<&row::number>> builder;
  mr::detail::sample_sink<int>& in;
};
template <class... Stages>
pipeline(mr::detail::pipeline_builder_options, mr::batch_options, Stages...) -> pipeline<Stages...>;

constexpr mr::detail::pipeline_builder_options inline_run() { return {.seed = 7, .workers = 0}; }
constexpr mr::batch_options rows(std::size_t size) { return {.size = size, .drop_last = false}; }

/// The rows in the order of their keys: those of a jitter, or of a permutation of all.
std::vector<std::int64_t> shuffled(std::uint64_t seed, std::size_t window, bool permutes, std::int64_t count) {
  const mr::detail::shard_order order({.seed = seed, .shuffled = true, .window = window, .permutes = permutes});
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
  for (std::int64_t i = 0; i < count; ++i)
    keys.emplace_back(permutes ? order.permutation_key(0, static_cast<std::uint64_t>(i))
                               : order.jitter_key(0, static_cast<std::uint64_t>(i)), i);
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> all;
  for (const auto& [key, number] : keys) all.push_back(number);
  all.push_back(-1);
  return all;
}

template <class Now, class... Stages>
constexpr replay_start start_of(const Stages&...) {
  const stage_list<Stages...>* const list = nullptr;
  return replay_start_of<Now>(list);
}

}  // namespace

TEST_CASE("consecutive maps are one segment, which ends at a stage of another kind and at batch") {
  const auto names = [](auto... stages) {
    return pipeline(inline_run(), rows(4), std::move(stages)...).names();
  };
  using list = std::vector<std::string>;
  const auto map = mr::map(next_row);
  CHECK(names(map, map) == list{"workers 1"});
  CHECK(names(mr::filter(is_even)) == list{"expand 1", "workers 1"});
  CHECK(names(map, mr::expand(copies{}), map) == list{"expand 1", "workers 1"});
  CHECK(names(mr::expand(delayed{})) == list{"map 1", "expand 1", "workers 1"});
  CHECK(names(mr::take(3), map) == list{"map 1", "expand 1", "workers 1"});
  CHECK(names(map, mr::shuffle({.window = 3}), map, mr::filter(is_even)) ==
        list{"map 1", "shuffle 1", "expand 1", "workers 1"});
  CHECK(names(mr::filter(is_even), mr::shuffle({.window = 3})) == list{"expand 1", "shuffle 1", "workers 1"});
}

TEST_CASE("maps that wait have their own threads, as many as the largest request") {
  mr::detail::thread_executor arena(1);
  const mr::detail::pipeline_builder_options o{.workers = 3, .arena = &arena};
  const auto waits = [](unsigned threads) { return mr::map(next_row, {.blocking = true, .threads = threads}); };
  const auto works = [](unsigned threads) { return mr::map(next_row, {.threads = threads}); };
  using list = std::vector<std::string>;
  CHECK(pipeline(o, rows(4), works(9)).names() == list{"workers 3"});
  CHECK(pipeline(o, rows(4), waits(1)).names() == list{"workers 1"});
  CHECK(pipeline({.workers = 1, .arena = &arena}, rows(4), waits(5)).names() == list{"workers 5"});
  CHECK(pipeline(o, rows(4), waits(2), waits(5), waits(4)).names() == list{"workers 5"});
  CHECK(pipeline(o, rows(4), waits(2), mr::filter(is_even), works(9)).names() == list{"expand 2", "workers 3"});
  CHECK(pipeline(o, rows(4), mr::filter(is_even), waits(2)).names() == list{"expand 3", "workers 2"});
  CHECK(pipeline(o, rows(4), waits(2), mr::shuffle({.window = 2})).names() == list{"map 2", "shuffle 1", "workers 3"});
  CHECK(pipeline(inline_run(), rows(4), waits(5)).names() == list{"workers 1"});   // the caller does all work
}

TEST_CASE("a stage that runs serially has its own thread if there is a worker") {
  mr::detail::thread_executor arena(1);
  pipeline t({.workers = 1, .arena = &arena}, rows(4), mr::take(5));
  t.in.put({.item = 1, .origin = t.names_of_samples.make("a.tar", "1")});
  t.in.publish();
  CHECK(eventually([&] { return t.builder.last().tickets().available() == 1; }));
}

TEST_CASE("few rows wait after another segment: two batches") {
  const auto waiting_rows = [](std::size_t size, auto... stages) {
    pipeline t(inline_run(), {.size = size, .drop_last = false}, std::move(stages)...);
    t.put(20'000);
    return t.builder.last().tickets().available();
  };
  const auto all = mr::filter([](const row&) { return true; });
  CHECK(waiting_rows(4) == 4096);
  CHECK(waiting_rows(3000) == 8192);   // a power of two
  CHECK(waiting_rows(4, all) == 256);
  CHECK(waiting_rows(100, all) == 256);
  CHECK(waiting_rows(128, all) == 256);
  CHECK(waiting_rows(129, all) == 512);
  CHECK(waiting_rows(4, mr::take(20'000)) == 256);
  CHECK(waiting_rows(4, all, mr::shuffle({.window = 1})) == 256);
}

TEST_CASE("the options of batch are those of the last segment") {
  const auto run = [](mr::batch_options o) {
    auto t = pipeline(inline_run(), o);
    auto all = t.run(7);
    return std::pair(all, t.keys);
  };
  using list = std::vector<std::int64_t>;
  CHECK(run({.size = 4, .drop_last = true}).first == list{0, 1, 2, 3, -1});
  CHECK(run({.size = 4, .drop_last = false}).first == list{0, 1, 2, 3, -1, 4, 5, 6, -1});
  CHECK(run({.size = 4, .drop_last = true, .pad_last = true}).first == list{0, 1, 2, 3, -1, 4, 5, 6, -1});
  CHECK(run({.size = 4}).second.empty());
  CHECK(run({.size = 4, .keys = true}).second == "0 1 2 3 ");
}

TEST_CASE("outputs of an expanding stage have their own names if the session creates names") {
  const auto keys_of = [](mr::detail::sample_names* names, auto stage) {
    auto o = inline_run();
    o.names = names;
    auto t = pipeline(o, {.size = 3, .drop_last = false, .keys = true}, std::move(stage));
    t.run(3);
    return t.keys;
  };
  mr::detail::sample_names names;
  CHECK(keys_of(nullptr, mr::expand(copies{})) == "1 2 2 ");
  CHECK(keys_of(&names, mr::expand(copies{})) == "1#0 2#0 2#1 ");
  CHECK(keys_of(&names, mr::expand(delayed_to_end{})) == "1#0 2#0 2#1 ");   // the last one is emitted at the end
  CHECK(keys_of(&names, mr::filter(is_even)) == "0 2 ");
  CHECK(keys_of(&names, mr::take(2)) == "0 1 ");
}

TEST_CASE("maps are numbered over the flow, and those that draw have their own streams") {
  const auto draw = [](std::int64_t id, std::size_t stage) {
    mr::rng random({.seed = 7, .epoch = 0, .sample = static_cast<std::uint64_t>(id), .stage = stage});
    return static_cast<std::int64_t>(random.below(1'000'000));
  };
  auto t = pipeline(inline_run(), rows(2), mr::map(with_draw), mr::map(next_row), mr::map(with_draw));
  CHECK(t.run(2) == std::vector<std::int64_t>{1 + draw(0, 0) + draw(0, 1), 2 + draw(1, 0) + draw(1, 1), -1});
  // After a stage that creates new samples, ids are those of its outputs, and the count of stages continues.
  const auto all = mr::filter([](const row&) { return true; });
  auto cut = pipeline(inline_run(), rows(2), mr::map(with_draw), mr::map(next_row), all, mr::map(with_draw));
  const auto child = [](std::uint64_t id) { return static_cast<std::int64_t>(mr::detail::child_id(id, 0)); };
  CHECK(cut.run(2) == std::vector<std::int64_t>{1 + draw(0, 0) + draw(child(0), 1),
                                                2 + draw(1, 0) + draw(child(1), 1), -1});
  const auto fails = mr::map([](row r) { return r.number == 1 ? throw std::runtime_error("one") : r; });
  CHECK(pipeline(inline_run(), rows(2), mr::map(next_row), mr::shuffle({.window = 1}), fails)
            .error_of(2)
            .find("stage map 3") != std::string::npos);   // the first one created the row
}

TEST_CASE("a shuffle inside the flow draws by the seed, and permutes short passes unless the run has an older "
          "version") {
  auto o = inline_run();
  for (const bool older : {false, true}) {
    o.keeps_older_order = older;
    CHECK(pipeline(o, rows(12), mr::shuffle({.window = 12})).run(12) == shuffled(7, 12, !older, 12));
  }
  o.keeps_older_order = false;
  CHECK(pipeline(o, rows(12), mr::shuffle({.window = 5})).run(12) == shuffled(7, 5, false, 12));
  o.seed = 8;
  CHECK(pipeline(o, rows(12), mr::shuffle({.window = 5})).run(12) == shuffled(8, 5, false, 12));
}

TEST_CASE("a shuffle and a bucket buffer at most the bytes of the budget") {
  auto o = inline_run();
  o.shuffle_bytes = 6 * sizeof(row);
  const auto shuffle = mr::shuffle({.window = 6});
  CHECK(pipeline(o, rows(6), shuffle).run(6) == shuffled(7, 6, true, 6));
  o.shuffle_bytes = 2 * sizeof(row);
  CHECK(pipeline(o, rows(6), shuffle).error_of(60).find("expected at most 16 bytes") != std::string::npos);

  o.shuffle_bytes = 4 * sizeof(row);
  const auto buckets = mr::bucket<&row::number>({.boundaries = {3, 100}});
  using list = std::vector<std::int64_t>;
  CHECK(pipeline(o, rows(3), buckets).run(6) == list{0, 1, 2, -1, 3, 4, 5, -1});   // full: as many rows as a batch
  CHECK(pipeline(o, rows(5), buckets).error_of(6).find("expected at most 32 bytes") != std::string::npos);
}

TEST_CASE("the stages that drop samples are counted, each by its kind") {
  const auto nothing = mr::filter([](const row&) { return false; });
  const auto error_of = [&](auto... stages) {
    return pipeline(inline_run(), rows(4), std::move(stages)...).error_of(6);
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has(error_of(mr::filter(is_even), nothing), "0 of 3 samples passed filter 2"));
  CHECK(has(error_of(mr::take(2), mr::filter([](const row& r) { return r.number > 2; })),
            "0 of 2 samples passed filter 1"));
  CHECK(has(error_of(nothing, mr::expand(copies{})), "0 of 6 samples passed filter 1"));
  CHECK(has(error_of(mr::map([](row) { return row{}; }), mr::expand(copies{})), "expand 1 emitted 0 items for 6"));
}

TEST_CASE("the layout is that of the last segment") {
  auto t = pipeline(inline_run(), rows(4));
  t.run(4);
  CHECK(t.builder.layout().batch_bytes() == t.builder.last().batch_bytes());
  CHECK(t.builder.layout().batch_bytes() >= 4 * sizeof(row));
}

TEST_CASE("a resumed run enters the flow where no stage keeps an item") {
  const auto map = mr::map(next_row);
  const auto batch = mr::batch<&row::number>({.size = 2});
  const auto pack = mr::pack({.length = 8});
  const auto packed = mr::map([](mr::packed p) { return p; });
  const auto keep_all = mr::filter([](const mr::packed&) { return true; });
  const auto ids = mr::batch<&mr::packed::ids>({.size = 2});
  using document = std::vector<std::uint32_t>;
  CHECK(start_of<row>(batch) == replay_start::sample);
  CHECK(start_of<row>(map, mr::filter(is_even), mr::expand(copies{}), batch) == replay_start::sample);
  CHECK(start_of<row>(map, mr::shuffle({}), map, batch) == replay_start::pass);
  CHECK(start_of<row>(mr::take(3), map, batch) == replay_start::pass);
  CHECK(start_of<row>(map, mr::expand(delayed_to_end{}), batch) == replay_start::pass);
  CHECK(start_of<row>(mr::expand(delayed{}), map, batch) == replay_start::run);
  CHECK(start_of<row>(mr::shuffle({}), mr::expand(delayed{}), mr::shuffle({}), batch) == replay_start::run);
  CHECK(start_of<document>(pack, ids) == replay_start::sample);   // its state is a number
  CHECK(start_of<document>(pack, packed, ids) == replay_start::sample);
  CHECK(start_of<document>(pack, keep_all, ids) == replay_start::pass);
  CHECK(start_of<document>(mr::shuffle({}), pack, ids) == replay_start::pass);
}

// The default number of prefetched batches: few large ones, more small ones, and never more memory than the budget.
TEST_CASE("small batches have more slots by default, of 1 MiB at most") {
  constexpr std::size_t kib = 1'024, mib = 1'024 * kib;
  const auto prefetched = [](std::size_t bytes) { return mr::detail::memory_budget::default_prefetch(bytes); };
  CHECK(prefetched(0) == 16);
  CHECK(prefetched(2 * kib) == 16);
  CHECK(prefetched(64 * kib) == 16);
  CHECK(prefetched(65 * kib) == 15);
  CHECK(prefetched(128 * kib) == 8);
  CHECK(prefetched(256 * kib) == 4);
  CHECK(prefetched(512 * kib) == 4);
  CHECK(prefetched(16 * mib) == 4);
  CHECK(prefetched(20 * mib) == 3);
  CHECK(prefetched(38 * mib) == 2);   // 256 images of 224 x 224
  CHECK(prefetched(1'000 * mib) == 2);
}

TEST_CASE("a window that is filled at the beginning counts as a complete one if the budget has room") {
  mr::detail::memory_budget m{.budget_bytes = 2'000'000, .window = 1'000, .sample_bytes = 1'000};
  CHECK(m.window_bytes() == 500'000);
  m.withholds = true;
  CHECK(m.window_bytes() == 1'000'000);
  CHECK(m.describe().find("shuffle window 1000 x ") != std::string::npos);
  m.budget_bytes = 900'000;   // the window is then released before it is complete
  CHECK(m.window_bytes() == 500'000);
  CHECK(m.describe().find("shuffle window 1000 / 2 x ") != std::string::npos);
}
