// shards() with its option .index: exact order, streaming, the report of a session, and runs over a set that grew.
#include "indexed_runs.hpp"

#include <millrace/base/random.hpp>
#include <millrace/mix.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/expand.hpp>

#include <zlib.h>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace mr = millrace;
using namespace indexed_runs;
using indexed_runs::example;
using indexed_runs::prepare;

namespace {

/// Writes a compressed copy of each shard of a folder.
std::string compress_shards(const std::string& folder) {
  const std::string to = folder + "/compressed";
  std::filesystem::create_directory(to);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".tar") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    gzFile out = gzopen((to + "/" + entry.path().filename().string() + ".gz").c_str(), "wb");
    REQUIRE(gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
    gzclose(out);
  }
  return to;
}

using key_names = std::vector<std::string>;
auto label_only(const mr::record& r) { return example{r["cls"].as<std::int32_t>(), 0}; }

/// The labels that a flow of examples delivers, and the notices of the session.
struct news_of_run {
  std::vector<std::int32_t> labels;
  std::vector<mr::notice> news;

  std::string text(mr::notice_kind kind) const {
    std::string all;
    for (const mr::notice& n : news)
      if (n.kind == kind) all += n.text + "\n";
    return all;
  }
};
template <class Flow>
news_of_run labels_and_news(Flow flow, mr::session_options options = {.threads = 1}) {
  news_of_run all;
  options.notice = [&](const mr::notice& n) { all.news.push_back(n); };
  mr::session run{std::move(flow) | mr::batch<&example::label>({.size = 10, .drop_last = false}), options};
  for (auto& b : run)
    for (const std::int32_t label : b.template get<&example::label>().host()) all.labels.push_back(label);
  return all;
}

auto shuffled_labels(const std::string& shards, mr::shards_options o) {
  o.seed = 5;
  return mr::shards(shards, o) | mr::shuffle({.window = 30}) | mr::map(label_only);
}

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
outcome run_grown(Source source, const std::string& resume, bool grown, std::size_t max_batches = 1'000) {
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
  return run_grown(mr::shards(folder / "*.tar", {.seed = 5}), resume, grown, max_batches);
}

}  // namespace

TEST_CASE("the order depends on options and data alone, not on where the indexes are or whether they can be saved") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const std::string places[] = {"", folder / "indexes", folder / "s0-0.tar/none"};   // the last one cannot exist
  mr::rng random({.seed = 3});
  const auto below = [&](std::uint64_t n) {
    return static_cast<std::size_t>(random.uniform() * static_cast<double>(n));
  };
  const char* const text = std::getenv("MILLRACE_CONFIGURATIONS");
  const int configurations = text ? std::atoi(text) : 12;
  for (int i = 0; i < configurations; ++i) {
    CAPTURE(i);
    run_options o{.seed = below(1'000), .epochs = 1 + below(2), .threads = static_cast<int>(below(4)),
                  .window = below(4) == 0 ? 1 : below(300)};
    o.source.notice = mr::quiet;
    o.source.index_folder = folder / "reference";
    o.source.index = mr::index::required;
    const delivered expected = run(shards, o);
    o.source.index = mr::index::automatic;
    o.source.index_folder = places[below(3)];
    o.source.notice = [](const mr::notice&) {};
    o.threads = static_cast<int>(below(4));
    if (o.source.index_folder.empty())
      for (const auto& entry : std::filesystem::directory_iterator(shards))
        if (below(2) == 0 && entry.path().extension() == ".millrace-index") std::filesystem::remove(entry.path());
    const std::size_t ranks = std::size_t{1} << below(3);
    const delivered actual = run_all_ranks(shards, o, ranks);
    CHECK(actual.batches == expected.batches);
    CHECK(actual.positions == expected.positions);
    const std::size_t at = below(expected.positions.size() - 1);
    o.resume = expected.positions[at];
    const delivered rest = run_all_ranks(shards, o, std::size_t{1} << below(3));
    CHECK(rest.batches == std::vector(expected.batches.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                      expected.batches.end()));
    CHECK(rest.positions.back() == expected.positions.back());
  }
}

TEST_CASE("compressed shards are streamed, and the session reports once that the order is not exact") {
  const temporary_folder folder;
  const std::string shards = compress_shards(write_shards(folder));
  const news_of_run stream = labels_and_news(shuffled_labels(shards, {.index = mr::index::off}));
  const news_of_run automatic = labels_and_news(shuffled_labels(shards, {}));
  CHECK(stream.labels.size() == samples);
  CHECK(automatic.labels == stream.labels);
  CHECK(stream.text(mr::notice_kind::order).empty());
  const std::string text = automatic.text(mr::notice_kind::order);
  CHECK_MESSAGE(text.starts_with("without an index ranks may have different numbers of samples, and a resumed run "
                                 "reads samples again: the shard "), text);
  CHECK_MESSAGE(text.ends_with(" is compressed: it cannot be read sample by sample\n"), text);
  CHECK(text.find('\n') == text.size() - 1);
  CHECK_THROWS_WITH_AS(labels_and_news(shuffled_labels(shards, {.index = mr::index::required})),
                       doctest::Contains("Unpack it to plain tar, or stream the shards: .index = mr::index::off"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(labels_and_news(shuffled_labels(shards, {.without = key_names{"k0"}})),
                       doctest::Contains("is compressed"), mr::setup_error);
}

TEST_CASE("one compressed shard among plain ones turns all into a stream") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder), compressed = compress_shards(shards);
  std::filesystem::rename(compressed + "/s41-0.tar.gz", shards + "/s41-0.tar.gz");
  std::filesystem::remove(shards + "/s41-0.tar");
  const news_of_run all = labels_and_news(shuffled_labels(shards, {}));
  CHECK(all.labels == labels_and_news(shuffled_labels(shards, {.index = mr::index::off})).labels);
  CHECK(all.text(mr::notice_kind::order).find("s41-0.tar.gz is compressed") != std::string::npos);
}

TEST_CASE("a flow that changes the number of rows streams the shards, unless an option needs their index") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto even = [&](mr::shards_options o) {
    o.seed = 5;
    return mr::shards(shards, o) | mr::shuffle({.window = 30}) | mr::map(label_only) |
           mr::filter([](const example& e) { return e.label % 2 == 0; });
  };
  const news_of_run automatic = labels_and_news(even({}));
  CHECK(automatic.labels.size() == (samples + 1) / 2);
  CHECK(automatic.labels == labels_and_news(even({.index = mr::index::off})).labels);
  for (const auto& entry : std::filesystem::directory_iterator(shards))
    CHECK(entry.path().extension() == ".tar");   // no unnecessary index was built
  CHECK_THROWS_WITH_AS(labels_and_news(even({.index = mr::index::required})),
                       doctest::Contains("shards() with an index needs one row for each sample"), mr::setup_error);
  CHECK_THROWS_WITH_AS(labels_and_news(even({.where = [](std::string_view, std::string_view) { return true; }})),
                       doctest::Contains("with .only, .without, .where or .repeats needs one row for each sample"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::shards(shards, {.index = mr::index::off, .without = key_names{"k0"}}),
                       doctest::Contains("got .index = mr::index::off, expected automatic or required"),
                       mr::setup_error);
}

TEST_CASE("a resume point of a stream is refused by name if the order is exact, and vice versa") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  run_options o{.threads = 1, .keys = false, .max_batches = 2};
  const std::string exact = run(shards, o).positions.back();
  o.source.index = mr::index::off;
  const std::string stream = run(shards, o).positions.back();
  CHECK_NOTHROW(run(shards, {.threads = 1, .resume = stream, .keys = false, .source = {.index = mr::index::off}}));
  CHECK_THROWS_WITH_AS(run(shards, {.threads = 1, .resume = stream}),
                       doctest::Contains(
                           "The earlier run used no index: set .index = mr::index::off in shards()"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(run(shards, {.threads = 1, .resume = exact, .source = {.index = mr::index::off}}),
                       doctest::Contains(
                           "The earlier run used an index: remove .index = mr::index::off from shards()"),
                       mr::setup_error);
}

TEST_CASE("copies of a flow share their indexes; the session reports how they are built, and nothing after its end") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::size_t count = 0;
  {
    const auto flow = shuffled_labels(shards, {.index_folder = folder / "s0-0.tar/none"}) |
                      mr::batch<&example::label>({.size = 10});
    for (int i = 0; i < 2; ++i) {
      mr::session_options options{.threads = 1};
      options.notice = [&](const mr::notice& n) { count += n.kind == mr::notice_kind::index; };
      mr::session run{flow, options};
      for (auto& b : run) b.release();
      CHECK(count == 1);   // that they cannot be saved
    }
  }
  CHECK(count == 1);
  std::size_t of_source = 0;
  const news_of_run own = labels_and_news(
      shuffled_labels(shards, {.index_folder = folder / "s0-0.tar/none",
                        .notice = [&](const mr::notice& n) { of_source += n.kind == mr::notice_kind::index; }}));
  CHECK(own.text(mr::notice_kind::index).empty());
  CHECK(of_source == 1);
}

TEST_CASE("a mix of shards is exact if all of them have an index, otherwise a stream") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder), compressed = compress_shards(shards);
  const auto mixed = [&](const std::string& second, mr::shards_options a, mr::shards_options b) {
    return mr::mix({.seed = 3}, mr::weighted{shuffled_labels(shards, a), 0.5},
                   mr::weighted{shuffled_labels(second, b), 0.5});
  };
  const news_of_run exact = labels_and_news(
      mixed(shards, {.index = mr::index::required}, {.index = mr::index::required}));
  CHECK(labels_and_news(mixed(shards, {}, {})).labels == exact.labels);
  const mr::shards_options off{.index = mr::index::off};
  const news_of_run stream = labels_and_news(mixed(compressed, off, off));
  const news_of_run automatic = labels_and_news(mixed(compressed, {}, {}));
  CHECK(automatic.labels == stream.labels);
  CHECK(automatic.text(mr::notice_kind::order).find("is compressed") != std::string::npos);
  CHECK_THROWS_WITH_AS(labels_and_news(mixed(compressed, {.index = mr::index::required}, {})),
                       doctest::Contains("the sources of the mix are streamed, because not all have an index"),
                       mr::setup_error);
  const auto others = [&](mr::shards_options o) {
    return mr::mix({.seed = 3}, mr::weighted{shuffled_labels(shards, o), 0.5},
                   mr::weighted{mr::from(std::vector<int>{1, 2, 3}) | mr::map([](int n) {
                                  return example{n, 0};
                                }),
                                0.5});
  };
  CHECK(labels_and_news(others({})).labels.size() > 3);
  CHECK_THROWS_WITH_AS(others({.index = mr::index::required}),
      doctest::Contains("shards() has an option that needs an index"),
                       mr::setup_error);
}

TEST_CASE("a damaged shard ends the start of a session, and one with on_damage continues without its rest") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  std::filesystem::resize_file(shards + "/s41-0.tar", 20'700);   // within a sample
  const auto flow = shuffled_labels(shards, {});
  mr::session_options on_damage{.threads = 1};
  on_damage.on_damage.policy = mr::damage::mask;
  for (int i = 0; i < 2; ++i) {
    const news_of_run all = labels_and_news(flow, on_damage);
    CHECK(all.labels.size() < samples);
    CHECK(all.labels.size() > samples - 90);
    CHECK(all.text(mr::notice_kind::lost_shard).find("1 of 5 shards are damaged: ") != std::string::npos);
    CHECK_THROWS_WITH_AS(labels_and_news(flow), doctest::Contains("s41-0.tar"), mr::data_error);   // a copy of the flow
  }
  CHECK_THROWS_WITH_AS(labels_and_news(shuffled_labels(shards, {.damaged_shards_at_most = 0}), on_damage),
                       doctest::Contains("s41-0.tar"), mr::data_error);
}

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
    return run_grown(mr::shards(folder / "*.tar", {.seed = 5, .index = mr::index::off}), resume, grown, 3);
  };
  const std::string of_stream = stream("", false).points.back();
  CHECK(mr::parse_position(of_stream).counts.shards == 4);
  std::filesystem::remove(folder / "s3-0.tar");
  CHECK_THROWS_WITH_AS(indexed(folder, first.points.back(), true),
                       doctest::Contains("got 3 shards and 60 samples, expected at least 4 shards and 80 samples"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(stream(of_stream, true), doctest::Contains("session_options::grown requires an index"),
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
