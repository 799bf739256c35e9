// Reads of a read stage: chunks, identities, errors, damage, names and counters, without a thread.
#include <millrace/read/stage/read_stage_base.hpp>

#include "scripted_source.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

namespace {

/// Its reader can omit samples that it cannot read.
struct skipping_source : scripted_source {
  struct reader : scripted_source::reader {
    int skipped = 0;
    mr::error_location failed() const { return {.stage = "tar", .key = "n" + std::to_string(at - 1)}; }
    void skip() { ++skipped; }
  };
  reader open(std::size_t shard, std::uint64_t) const { return {{&script[shard]}}; }
};
/// Its reader says whether it can continue, and checks the rest of a shard that nobody reads.
struct resuming_source : scripted_source {
  bool resumes = true;
  std::shared_ptr<int> checks = std::make_shared<int>(0);
  struct reader : scripted_source::reader {
    bool resumes;
    std::shared_ptr<int> checks;
    bool can_continue() const { return resumes; }
    void check_rest() const { ++*checks; }
  };
  reader open(std::size_t shard, std::uint64_t) const { return {{&script[shard]}, resumes, checks}; }
};
/// The number of samples of each shard is known.
struct counted_source : scripted_source {
  std::uint64_t count = 0;
  std::exception_ptr not_opened{};
  std::uint64_t stated_samples(std::size_t) const { return count; }
  reader open(std::size_t shard, std::uint64_t epoch) const {
    if (shard == 0 && not_opened) std::rethrow_exception(not_opened);
    return scripted_source::open(shard, epoch);
  }
};
/// It numbers its samples itself, names them, and requests the shards of a pass.
struct stamping_source : scripted_source {
  std::shared_ptr<std::string> log = std::make_shared<std::string>();
  struct reader : scripted_source::reader {
    void stamp(mr::detail::sample<sized_number>& s) const { s.id = 1'000 + static_cast<std::uint64_t>(s.item->number); }
    std::string name() const { return "name " + std::to_string(at); }
  };
  reader open(std::size_t shard, std::uint64_t) const {
    *log += "open " + std::to_string(shard) + " ";
    return {{&script[shard]}};
  }
  void expect(const std::vector<std::size_t>& shards) const { *log += "expect " + std::to_string(shards.size()) + " "; }
  void name_samples(const std::shared_ptr<mr::detail::sample_names>&) const { *log += "names "; }
};

struct piece {};
std::string text_of(const piece&, std::uint64_t own_offset_bytes) {
  return "; a piece is far from " + std::to_string(own_offset_bytes);
}
/// It can explain a missing sample or field.
struct explaining_source : scripted_source {
  struct fields {
    bool none = false;
    bool empty() const { return none; }
    std::string text() const { return "'jpg'"; }
  } required{};
  bool knows_piece = true;
  const fields& having() const { return required; }
  std::optional<piece> other_piece_of(const mr::error_location&) const {
    return knows_piece ? std::optional(piece{}) : std::nullopt;
  }
};

const auto foreign = std::make_exception_ptr(std::runtime_error("foreign"));

template <class Source>
Source two_shards_with(std::exception_ptr error) {
  Source s;
  s.add(0, 5).add(10, 2);
  s.script[0][2].error = std::move(error);
  return s;
}
/// Runs two shards with an error in the first one. `set` changes the stage.
template <class Source>
std::unique_ptr<stage_with_sink<Source>> run_with(Source source, bool can_continue) {
  auto t = std::make_unique<stage_with_sink<Source>>(std::move(source));
  if (can_continue) t->stage.continue_after_damage();
  t->run();
  return t;
}

}  // namespace

TEST_CASE("a portion has as many samples as requested, and an end needs no further one") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 7).add(10, 3));
  t.stage.most = 3;
  std::vector<std::uint64_t> read;
  while (t.stage.advance()) {
    read.push_back(t.stage.samples_read());
    CHECK((t.stage.was_left_empty || read.size() == 1));
  }
  CHECK(read == std::vector<std::uint64_t>{3, 6, 7, 10, 10});   // a full portion may not be the last
  CHECK(t.sink.log() == "0 1 2 3 4 5 6 10 11 12 epoch end");
  CHECK(t.stage.bytes_read() == 10);
}

TEST_CASE("a chunk ends with the sample that reaches its bytes") {
  const auto samples_of = [](std::size_t bytes) {
    stage_with_sink<scripted_source> t(scripted_source().add(0, 12, bytes));
    REQUIRE(t.stage.advance());
    CHECK(t.stage.bytes_read() == t.stage.samples_read() * bytes);
    return t.stage.samples_read();
  };
  constexpr std::size_t chunk = mr::detail::read_stage::chunk_bytes;
  CHECK(samples_of(chunk / 4) == 4);
  CHECK(samples_of(chunk / 4 - 1) == 5);
  CHECK(samples_of(chunk) == 1);
  CHECK(samples_of(4 * chunk) == 1);
}

TEST_CASE("idle workers get a sample of a slow read at once, and busy ones a quarter of a chunk") {
  constexpr std::uint64_t slow_ns = 30'000;
  const auto samples_of = [](std::uint64_t waiting, std::size_t most) {
    stage_with_sink<scripted_source> t(scripted_source().add(0, 200, 1, slow_ns));
    t.sink.waiting = waiting;
    t.stage.most = most;
    REQUIRE(t.stage.advance());
    return t.stage.samples_read();
  };
  CHECK(samples_of(0, 32) == 1);
  CHECK(samples_of(1, 32) == 32);
  CHECK(samples_of(1, 150) == 64);
}

TEST_CASE("a stage that is stopped reads no further sample") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 12));
  t.stage.stop();
  REQUIRE(t.stage.advance());
  CHECK(t.stage.samples_read() == 1);
}

TEST_CASE("a sample is identified by its shard and its number in it, in every epoch") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 3).add(10, 2), {.order = {.epochs = 2}});
  t.stage.most = 2;
  CHECK(t.run() == "0 1 2 10 11 epoch 0 1 2 10 11 epoch end");
  for (std::size_t i = 0; i < 10; ++i) {
    const auto& s = t.sink.samples()[i];
    CHECK(s.id == mr::detail::sample_id(i % 5 < 3 ? 0 : 1, i % 5 < 3 ? i % 5 : i % 5 - 3));
    CHECK(s.epoch == i / 5);
    CHECK(s.pass == i / 5);
    CHECK(s.origin.empty());   // names were not requested
  }
}

TEST_CASE("an error ends its shard after the samples before it, and names it") {
  const auto t = run_with(two_shards_with<scripted_source>(scripted_damage()), true);
  CHECK(t->sink.log() == "0 1 failed");
  CHECK(error_text(t->sink.error()).find("torn (shard data/0.tar, stage source)") != std::string::npos);
  CHECK(t->stage.samples_read() == 2);
  const auto other = run_with(two_shards_with<scripted_source>(foreign), false);
  CHECK_THROWS_AS(std::rethrow_exception(other->sink.error()), mr::stage_error);
}

TEST_CASE("a reader that can omit a sample does so if the run continues after damage") {
  const auto t = run_with(two_shards_with<skipping_source>(scripted_damage()), true);
  CHECK(t->sink.log() == "0 1 damaged 3 4 10 11 epoch end");
  const auto& damaged = t->sink.samples()[2];
  CHECK(error_text(damaged.item.error()).find("torn (key n2, stage tar)") != std::string::npos);
  CHECK(damaged.id == mr::detail::sample_id(0, 2));
  CHECK(t->sink.samples()[3].id == mr::detail::sample_id(0, 3));

  const auto of_storage = run_with(
      two_shards_with<skipping_source>(std::make_exception_ptr(mr::io_error("no disk", "Check it"))), true);
  CHECK(of_storage->sink.log() == "0 1 damaged 3 4 10 11 epoch end");
  CHECK_THROWS_AS(std::rethrow_exception(of_storage->sink.samples()[2].item.error()), mr::detail::lost_shard_error);

  CHECK(run_with(two_shards_with<skipping_source>(scripted_damage()), false)->sink.log() == "0 1 failed");
  CHECK(run_with(two_shards_with<skipping_source>(foreign), true)->sink.log() == "0 1 failed");
}

TEST_CASE("a reader that can continue does so if the run continues, and else checks the rest of its shard") {
  const auto t = run_with(two_shards_with<resuming_source>(scripted_damage()), true);
  CHECK(t->sink.log() == "0 1 damaged 3 4 10 11 epoch end");
  CHECK(error_text(t->sink.samples()[2].item.error()).find("torn (shard data/0.tar, stage source)") !=
        std::string::npos);
  CHECK(*t->source.checks == 0);
  const auto strict = run_with(two_shards_with<resuming_source>(scripted_damage()), false);
  CHECK(strict->sink.log() == "0 1 failed");
  CHECK(*strict->source.checks == 1);
  auto source = two_shards_with<resuming_source>(scripted_damage());
  source.resumes = false;
  for (const bool can_continue : {false, true}) {
    const auto ended = run_with(source, can_continue);
    CHECK(ended->sink.log() == "0 1 failed");
    CHECK(*source.checks == 0);
  }
}

TEST_CASE("the rest of a shard whose samples are counted is lost sample by sample") {
  const auto run = [](std::uint64_t count, std::exception_ptr error, bool can_continue) {
    auto source = two_shards_with<counted_source>(std::move(error));
    source.count = count;
    return run_with(std::move(source), can_continue);
  };
  const auto t = run(5, scripted_damage(), true);
  CHECK(t->sink.log() == "0 1 damaged damaged damaged 10 11 epoch end");
  for (std::size_t i = 2; i < 5; ++i) {
    const auto& s = t->sink.samples()[i];
    CHECK(s.id == mr::detail::sample_id(0, i));
    CHECK(s.what == mr::detail::sample<sized_number>::kind::damaged);
    CHECK_THROWS_AS(std::rethrow_exception(s.item.error()), mr::detail::lost_shard_error);
    CHECK(error_text(s.item.error()).find("shard data/0.tar") != std::string::npos);
  }
  CHECK(t->sink.samples()[2].item.error() != t->sink.samples()[3].item.error());   // each is located separately
  CHECK(run(3, scripted_damage(), true)->sink.log() == "0 1 damaged 10 11 epoch end");
  CHECK(run(2, scripted_damage(), true)->sink.log() == "0 1 failed");   // the count must be wrong
  CHECK(run(5, scripted_damage(), false)->sink.log() == "0 1 failed");
  CHECK(run(5, foreign, true)->sink.log() == "0 1 failed");

  auto source = two_shards_with<counted_source>(nullptr);
  source.count = 2;
  source.not_opened = scripted_damage("not there");
  CHECK(run_with(source, true)->sink.log() == "damaged damaged 10 11 epoch end");
  CHECK(run_with(source, false)->sink.log() == "failed");
}

TEST_CASE("a source may number its samples, name them, and learn the shards of each pass before the first one") {
  stamping_source source;
  source.add(3, 2).add(7, 1);
  stage_with_sink<stamping_source> t(source, {.order = {.epochs = 2}});
  t.stage.name_samples(std::make_shared<mr::detail::sample_names>());
  CHECK(t.run() == "3 4 7 epoch 3 4 7 epoch end");
  CHECK(*source.log == "names expect 2 open 0 open 1 expect 2 open 0 open 1 ");
  CHECK(t.sink.samples()[1].id == 1'004);
  CHECK(t.sink.samples()[0].origin.key() == "name 1");
  CHECK(t.sink.samples()[1].origin.key() == "name 2");
}

TEST_CASE("samples without a name have that of their shard and their number in it") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 2).add(10, 1));
  t.stage.name_samples(std::make_shared<mr::detail::sample_names>());
  t.run();
  CHECK(t.sink.samples()[0].origin.key() == "data/0.tar:0");
  CHECK(t.sink.samples()[1].origin.key() == "data/0.tar:1");
  CHECK(t.sink.samples()[2].origin.key() == "data/1.tar:0");
}

TEST_CASE("statistics count the samples that were read in turn") {
  stage_with_sink<scripted_source> t(scripted_source().add(0, 4).add(10, 3), {.open_shards = 2});
  t.sink.room = 0;
  t.stage.run();   // it is not the second shard's turn: the first one still waits for space
  mr::flow_statistics f;
  t.stage.base::add_to(f, mr::detail::steady_now_ns());
  CHECK(f.in_turn_samples == 4);
  CHECK(t.stage.samples_read() == 7);
  CHECK(t.stage.read_ahead_bytes() == 7);
  CHECK(t.stage.threads() == 0);
  CHECK(t.stage.read_ahead_limit_bytes() == 1'000);
}

TEST_CASE("a source explains a missing sample and a missing field, and no other error") {
  const auto explanation = [](const explaining_source& source, std::exception_ptr why) {
    const stage_with_sink<explaining_source> t(source);
    return error_text(t.stage.explain(std::move(why)));
  };
  const auto no_sample = [] {
    return std::make_exception_ptr(mr::detail::no_sample_error("the source has no sample", "Look"));
  };
  const auto no_field = [] {
    return std::make_exception_ptr(mr::detail::missing_field_error("no 'cls'", "Look", {.offset_bytes = 512}));
  };
  explaining_source source;
  source.add(0, 1);
  CHECK(explanation(source, no_sample()).find("; .having omits samples without 'jpg'") != std::string::npos);
  CHECK(explanation(source, no_field()).find("no 'cls'; a piece is far from 512") != std::string::npos);
  CHECK(explanation(source, scripted_damage()) == error_text(scripted_damage()));
  source.required.none = true;
  source.knows_piece = false;
  CHECK(explanation(source, no_sample()) == error_text(no_sample()));
  CHECK(explanation(source, no_field()) == error_text(no_field()));
}

namespace mr = millrace;

namespace {

/// Counts 256 samples of `sample_ns` each. Returns those at which the chunk may end.
std::vector<std::size_t> ends_of(bool idle, std::uint64_t sample_ns) {
  const std::uint64_t start_ns = 5'000;
  mr::detail::chunk_clock clock(start_ns);
  std::vector<std::size_t> ends;
  for (std::size_t n = 1; n <= 256; ++n)
    if (clock.ends_chunk([&] { return idle; }, [&] { return start_ns + n * sample_ns; })) ends.push_back(n);
  return ends;
}

}  // namespace

TEST_CASE("idle workers get a chunk that lasts longer than 20 us, after 1, 4, 16, 64 or 256 samples") {
  CHECK(ends_of(true, 20'001) == std::vector<std::size_t>{1, 4, 16, 64, 256});
  CHECK(ends_of(true, 20'000) == std::vector<std::size_t>{4, 16, 64, 256});
  CHECK(ends_of(true, 1'000) == std::vector<std::size_t>{64, 256});
  CHECK(ends_of(true, 10).empty());
}

TEST_CASE("busy workers get a quarter of a chunk at the earliest, and only if that lasts longer than 1 ms") {
  CHECK(ends_of(false, 10'000'000) == std::vector<std::size_t>{64, 256});
  CHECK(ends_of(false, 15'625) == std::vector<std::size_t>{256});   // 64 samples are 1 ms exactly
  CHECK(ends_of(false, 1'000).empty());
}

TEST_CASE("the workers and the time are queried only when the chunk may end") {
  mr::detail::chunk_clock clock(0);
  std::size_t calls = 0, time_checks = 0;
  for (std::size_t n = 1; n <= 256; ++n)
    CHECK_FALSE(clock.ends_chunk([&] { return ++calls, false; }, [&] { return ++time_checks, std::uint64_t{0}; }));
  CHECK(calls == 5);
  CHECK(time_checks == 2);   // after 64 and 256 samples
}
