// Resumed runs report where they continue, report changes of the data set, and continue over one that grew.
#include "indexed_runs.hpp"

#include <millrace/sources/shards.hpp>

#include <filesystem>
#include <set>

namespace mr = millrace;
using indexed_runs::example;
using indexed_runs::prepare;

namespace {

void write_shard(const temporary_folder& folder, int number, int count) {
  mr::shard_writer shard({.pattern = folder / ("s" + std::to_string(number) + "-%d.tar")});
  for (int i = 0; i < count; ++i)
    shard.write("k" + std::to_string(100 * number + i), {{"cls", std::to_string(100 * number + i)}});
  shard.close();
}

struct outcome {
  std::vector<std::pair<std::uint64_t, std::set<int>>> epochs;   // number, labels
  std::vector<std::string> points, notices;
  std::uint64_t repeated = 0;
};

/// Two epochs in batches of 4, up to `max_batches`.
template <class Source>
outcome run(Source source, const std::string& resume, bool grown, std::size_t max_batches = 1'000) {
  auto options = quiet(1, 3);
  options.resume = resume;
  options.grown = grown;
  outcome out;
  options.notice = [&](const mr::notice& n) {
    if (n.kind == mr::notice_kind::resume) out.notices.push_back(n.text);
  };
  mr::session session{std::move(source) | mr::shuffle({.window = 30}) | mr::map(prepare) |
                          mr::batch<&example::label>({.size = 4}),
                      options};
  for (auto& b : session) {
    if (out.epochs.empty() || out.epochs.back().first != b.epoch()) out.epochs.push_back({b.epoch(), {}});
    for (const auto label : b.template get<&example::label>().host())
      out.repeated += !out.epochs.back().second.insert(label).second;
    out.points.push_back(mr::to_text(b.position()));
    if (out.points.size() == max_batches) break;
  }
  return out;
}

outcome indexed(const temporary_folder& folder, const std::string& resume = "", bool grown = false,
                std::size_t max_batches = 1'000) {
  return run(mr::shards(folder / "*.tar", {.seed = 5}), resume, grown, max_batches);
}

}  // namespace

TEST_CASE("a resumed run reports its batch, its epoch and its step") {
  const temporary_folder folder;
  for (int i = 0; i < 4; ++i) write_shard(folder, i, 20);
  const outcome first = indexed(folder, "", false, 20);
  CHECK(first.notices.empty());
  CHECK(indexed(folder, first.points[2]).notices ==
        std::vector<std::string>{"the run continues after batch 3 of epoch 0 (step 3)"});
  CHECK(indexed(folder, first.points[19]).notices ==
        std::vector<std::string>{"the run continues at the beginning of epoch 1 (step 20)"});
}

TEST_CASE("a run over a set that grew continues with its next epoch, and repeats nothing within an epoch") {
  const temporary_folder folder;
  for (int i = 0; i < 4; ++i) write_shard(folder, i, 20);
  const outcome first = indexed(folder, "", false, 3);
  const std::string point = first.points.back();
  CHECK(mr::parse_position(point).counts.shards == 4);
  CHECK(mr::parse_position(point).counts.samples == 80);
  write_shard(folder, 4, 8);
  for (const char* words :
       {"(4 shards and 80 samples) and is ", "(5 shards and 88 samples). Set session_options::grown"})
    CHECK_THROWS_WITH_AS(indexed(folder, point), doctest::Contains(words), mr::setup_error);
  const outcome rest = indexed(folder, point, true);
  CHECK(rest.notices ==
        std::vector<std::string>{
            "the run continues at the beginning of epoch 1 (step 22), over 5 shards and 88 samples instead of 4 shards "
            "and 80 samples. Epoch 0 ends after 12 samples; its other samples are part of this epoch"});
  CHECK(rest.repeated == 0);
  REQUIRE(rest.epochs.size() == 2);
  for (const auto& [epoch, labels] : rest.epochs) CHECK(labels.size() == 88);
  CHECK(rest.epochs[0].first == 1);
  // The digest continues.
  mr::position moved = mr::parse_position(point);
  moved.digest += 5;
  CHECK(mr::parse_position(indexed(folder, mr::to_text(moved), true, 1).points[0]).digest ==
        mr::parse_position(rest.points[0]).digest + 5);
  // From then on it resumes like any run, and without .grown.
  const outcome later = indexed(folder, rest.points[0]);
  CHECK(later.points.size() + 1 == rest.points.size());
  CHECK(later.points.back() == rest.points.back());
  // The same set is resumed in the middle of its epoch, with the option too.
  CHECK(indexed(folder, rest.points[0], true).points == later.points);
  // The epoch that was complete is not left out.
  const outcome complete = indexed(folder, "", false, 22);
  write_shard(folder, 5, 4);
  CHECK(indexed(folder, complete.points.back(), true).epochs.front().first == 1);
}

TEST_CASE("a set that shrank is not a grown one, and a stream cannot continue over another one") {
  const temporary_folder folder;
  for (int i = 0; i < 4; ++i) write_shard(folder, i, 20);
  const outcome first = indexed(folder, "", false, 3);
  const auto stream = [&](const std::string& resume, bool grown) {
    return run(mr::shards(folder / "*.tar", {.seed = 5, .index = mr::index::off}), resume, grown, 3);
  };
  const std::string of_stream = stream("", false).points.back();
  CHECK(mr::parse_position(of_stream).counts.shards == 4);
  std::filesystem::remove(folder / "s3-0.tar");
  CHECK_THROWS_WITH_AS(indexed(folder, first.points.back(), true),
                       doctest::Contains("got 3 shards and 60 samples, expected at least 4 shards and 80 samples"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(stream(of_stream, true), doctest::Contains("Use an index with session_options::grown"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(stream(of_stream, false), doctest::Contains("(4 shards) and is "), mr::setup_error);
}

TEST_CASE("an endless run has no next epoch that could continue over a set that grew") {
  const temporary_folder folder;
  for (int i = 0; i < 4; ++i) write_shard(folder, i, 20);
  const auto point_of = [&](const std::string& resume) {
    auto options = quiet(1);
    options.epoch_batches = mr::endless;
    options.resume = resume;
    options.grown = true;
    mr::session session{mr::shards(folder / "*.tar", {.seed = 5}) | mr::shuffle({.window = 30}) |
                            mr::map(prepare) | mr::batch<&example::label>({.size = 4}),
                        options};
    return mr::to_text(session.next().position());
  };
  const std::string point = point_of("");
  CHECK(point_of(point) != point);
  write_shard(folder, 4, 8);
  CHECK_THROWS_WITH_AS(point_of(point), doctest::Contains("but an endless run has no next epoch"), mr::setup_error);
}

TEST_CASE("a resume point without counts is used, and ranks of one step have the same place") {
  mr::position p{.seed = 7, .epoch = 1, .next_position = 24, .lanes = 4, .global_batch = 8, .data_set = 3};
  const std::string old = mr::to_text(p);
  CHECK(mr::parse_position(old).counts.shards == 0);
  p.counts = {.shards = 147, .samples = 1'000};
  const std::string text = mr::to_text(p);
  CHECK(text.find(" shards=147 samples=1000 crc32c=") != std::string::npos);
  CHECK(mr::parse_position(text) == p);
  CHECK(mr::parse_position(text).counts.samples == 1'000);
  CHECK(mr::parse_position(old) == p);   // counts are not part of a run's position
  mr::position other = p;
  other.digest = 99;
  CHECK(p.place() == other.place());
  other.next_position += 8;
  CHECK(p.place() != other.place());
  // Without an index each rank reads its own shards, and has its own place in them.
  mr::position first{.version = mr::position::replay_version, .seed = 7, .step = 6, .ranks = 2, .rank = 0};
  first.replay.rows = 48;
  mr::position second = first;
  second.rank = 1;
  second.replay = {.ordinal = 9, .rows = 48};
  CHECK(first.place() == second.place());
  second.step = 7;
  CHECK(first.place() != second.place());
}
