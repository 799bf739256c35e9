// The end of a run with damaged samples: limits, refusals, shards without an index, damage at the end of a part.
#include "../read/stage/lane_flows.hpp"
#include "damaged_runs.hpp"

#include <millrace/sources/shards.hpp>
#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace mr = millrace;
using namespace damaged_runs;


TEST_CASE("beyond a limit a run ends with an error that shows the first five, after all batches before it") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const std::set<int> bad = every(10);
  const run_trace free = run_with(shards, {.bad = bad});
  std::string expected;
  for (const int threads : {0, 1, 4}) {
    std::size_t batches = 0;
    auto options = quiet(threads, 2);
    options.lanes = lanes;
    options.on_damage = {.policy = mr::damage::replace, .at_most = 12, .at_most_share = 1};
    mr::session session{mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 100}) |
                            mr::map(prepare_but(bad)) | mr::batch<&row_of::label>({.size = global_batch}),
                        options};
    const std::string text = message_of([&] {
      for (auto& b : session) batches += b.size() > 0;
    });
    std::size_t damaged = 0, intact = 0;
    for (const batch_trace& b : free.batches) {
      for (const row_trace& r : b) damaged += r.replaced || !r.valid;
      if (damaged > 12) break;
      ++intact;
    }
    CHECK(batches == intact);
    CHECK(text.find("too many samples are damaged: got 13 in this session, expected at most 12") != std::string::npos);
    std::size_t errors = 0;
    for (std::size_t at = 0; (at = text.find(" is bad", at)) != std::string::npos; ++at) ++errors;
    CHECK(errors == 5);
    if (threads == 0) expected = text;
    CHECK(text == expected);
  }
  CHECK(message_of([&] { run_with(shards, {.bad = every(2), .on_damage = {.policy = mr::damage::mask}}); })
            .find("expected at most 1 % of") != std::string::npos);
  CHECK(message_of([&] {
          run_with(shards, {.bad = every(1, 0),
                            .on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = 20}});
        }).find("the first 21 samples are damaged, more than damage_options::in_a_row") != std::string::npos);
  for (const int threads : {0, 2}) {
    const std::string text = message_of([&] {
      run_with(shards, {.bad = every(1, 0),
                        .on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = 10'000},
                        .threads = threads});
    });
    CHECK(text.find("no sample of the run is valid, so the shapes of its batches are unknown; the error of the first "
                    "sample: ") != std::string::npos);
    CHECK(text.find(" is bad") != std::string::npos);
    CHECK(text.find(", position 0)") != std::string::npos);
  }
}

TEST_CASE("damaged samples are in a row until the next good one, across batches") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  CHECK(message_of([&] {
          run_with(shards, {.bad = every(3),
                            .on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = 10}});
        }) == "no error");
  std::set<int> twenty;
  for (int label = 90; label < 110; ++label) twenty.insert(label);
  for (const std::uint64_t allowed : {std::uint64_t{19}, std::uint64_t{20}}) {
    auto options = quiet(2, 1);
    options.on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = allowed};
    mr::session session{mr::shards(shards) | mr::map(prepare_but(twenty)) |
                            mr::batch<&row_of::label>({.size = 12}),
                        options};
    std::size_t batches = 0;
    const std::string text = message_of([&] {
      for (auto& b : session) batches += b.size() > 0;
    });
    CHECK(batches == (allowed == 19 ? 9 : 25));
    CHECK((text.find("expected at most 19 in a row") != std::string::npos) == (allowed == 19));
  }
}

TEST_CASE("only damage and the kinds that the user names are tolerated") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const auto run = [&](mr::damage_options o) {
    auto options = quiet(2, 1);
    options.on_damage = std::move(o);
    mr::session session{mr::shards(shards, {.seed = 5}) | mr::map([](const mr::record& r) {
                          const auto label = r["cls"].as<std::int32_t>();
                          if (label == 130) throw std::runtime_error("no memory on the moon");
                          return row_of{label, {}};
                        }) | mr::batch<&row_of::label>({.size = 30}),
                        options};
    std::size_t rows = 0;
    for (auto& b : session) rows += b.size();
    return rows;
  };
  CHECK_THROWS_WITH_AS(run({.policy = mr::damage::replace}), doctest::Contains("no memory on the moon"),
                       mr::stage_error);
  CHECK_THROWS_AS(run({.policy = mr::damage::replace, .stages = {"batch"}}), mr::stage_error);
  CHECK(run({.policy = mr::damage::replace, .stages = {"map 1"}}) == 300);
}

TEST_CASE("flows without a separate row for each sample, and several ranks without an index, refuse on_damage") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  auto options = quiet(1, 1);
  options.on_damage = {.policy = mr::damage::mask};
  const auto keep = [](const mr::record&) { return true; };
  CHECK_THROWS_WITH_AS((mr::session{mr::shards(shards, {.index = mr::index::off}) | mr::filter(keep) |
                                        mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = 4}),
                                    options}),
                       doctest::Contains("on_damage needs one row for each sample, but the flow has expand"),
                       mr::setup_error);
  options.world = {.rank = 0, .size = 2};
  options.epoch_batches = 3;
  CHECK_THROWS_WITH_AS((mr::session{mr::shards(shards, {.index = mr::index::off}) | mr::map(prepare_but({})) |
                                        mr::batch<&row_of::label>({.size = 4}),
                                    options}),
                       doctest::Contains("on_damage on several ranks needs an index"), mr::setup_error);
  auto plain = quiet(1, 1);
  mr::session strict{mr::shards(shards) | mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = 4}),
                     plain};
  for (auto& b : strict) {
    CHECK_THROWS_WITH_AS((void)b.valid(), doctest::Contains("has no valid() and replaced() flags"), mr::setup_error);
    break;
  }
}

TEST_CASE("a lane with less than two rows in a batch is reported at the start") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const auto description = [&](std::size_t of_lanes, std::size_t size) {
    auto options = quiet(1, 1);
    options.lanes = of_lanes;
    options.on_damage = {.policy = mr::damage::replace};
    return mr::session{mr::shards(shards) | mr::shuffle({.window = 100}) | mr::map(prepare_but({})) |
                           mr::batch<&row_of::label>({.size = size}),
                       options}
        .description();
  };
  CHECK(description(48, 32).find("Set session_options::lanes to 16") != std::string::npos);
  CHECK(description(16, 32).find("on_damage") == std::string::npos);
}

TEST_CASE("a lost shard without an index keeps its positions, if a file next to it counts its samples") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder), cut = folder / "s-1.tar";
  std::ofstream(folder / "sizes.json") << R"({"s-0.tar": 70, "s-1.tar": 70, "s-4.tar": 20})";
  struct trace {
    std::vector<int> labels;   // -1: masked
    std::vector<std::string> positions;
    mr::run_stats stats;
  };
  const auto run = [&](mr::damage_options o, int threads, std::uint64_t epoch_batches, const std::string& resume) {
    auto options = quiet(threads, 2);
    options.on_damage = std::move(o);
    options.epoch_batches = epoch_batches;
    options.resume = resume;
    const bool flags = options.on_damage.policy != mr::damage::fail;
    mr::session session{mr::shards(shards, {.seed = 2, .index = mr::index::off}) | mr::shuffle({.window = 40}) |
                            mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = 10}),
                        options};
    trace all;
    for (auto& b : session) {
      for (std::size_t i = 0; i < b.size(); ++i)
        all.labels.push_back(!flags || b.valid()[i] == 1 ? b.template get<&row_of::label>()[i] : -1);
      all.positions.push_back(mr::to_text(b.position()));
    }
    all.stats = session.stats();
    return all;
  };
  const auto check = [&](const trace& clean, const trace& damaged, std::size_t least) {
    REQUIRE(damaged.labels.size() == clean.labels.size());
    std::size_t lost = 0;
    for (std::size_t i = 0; i < clean.labels.size(); ++i) {
      if (damaged.labels[i] == clean.labels[i]) continue;
      REQUIRE(damaged.labels[i] == -1);
      REQUIRE(clean.labels[i] / 70 == 1);
      ++lost;
    }
    CHECK(lost >= least);
    CHECK(lost == damaged.stats.masked);
    CHECK(damaged.stats.lost_shards == 1);
  };
  const trace clean = run({}, 2, 0, ""), clean_lanes = run({}, 2, 35, "");
  const mr::damage_options mask{.policy = mr::damage::mask};   // the limits for single samples are far exceeded
  std::filesystem::resize_file(cut, 512 * 2 * 2 * 30 + 700);   // in the middle of a sample
  for (const int threads : {0, 1, 4}) {
    check(clean, run(mask, threads, 0, ""), 60);
    check(clean_lanes, run(mask, threads, 35, ""), 60);
  }
  const trace masked = run(mask, 2, 0, ""), masked_lanes = run(mask, 2, 35, "");
  for (const std::size_t batch : {3, 17, 33}) {
    const auto rest = [&](const trace& s) {
      return std::vector(s.labels.begin() + 10 * (static_cast<std::ptrdiff_t>(batch) + 1), s.labels.end());
    };
    CHECK(run(mask, 1, 0, masked.positions[batch]).labels == rest(masked));
    CHECK(run(mask, 1, 35, masked_lanes.positions[batch]).labels == rest(masked_lanes));
  }
  mr::damage_options none = mask;
  none.shards_at_most = 0;
  CHECK(message_of([&] { run(none, 1, 0, ""); }).find("1 shards are damaged, but on_damage allows at most 0") !=
        std::string::npos);
  const trace copied = run({.policy = mr::damage::replace}, 2, 0, "");
  CHECK(copied.labels.size() == clean.labels.size());
  CHECK(copied.stats.replaced + copied.stats.masked == masked.stats.masked);
  CHECK(copied.stats.replaced > 0);

  std::ofstream(folder / "sizes.json") << R"({"s-1.tar": 4611686018427387904})";   // not a count of a shard
  CHECK(run(mask, 1, 0, "").labels.size() < clean.labels.size());
}

TEST_CASE("a session whose samples are all lost with their shards ends with an error") {
  const temporary_folder folder;
  mr::shard_writer shard({.pattern = folder / "s-%d.tar"});
  for (int i = 0; i < 400; ++i) shard.write("k" + std::to_string(i), {{"cls", "1"}});
  shard.close();
  std::filesystem::resize_file(folder / "s-0.tar", 100);
  std::ofstream(folder / "sizes.json") << R"({"s-0.tar": 400})";
  for (const int threads : {0, 2}) {
    auto options = quiet(threads, 1'000'000);
    options.on_damage = {.policy = mr::damage::mask};
    mr::session session{mr::shards(folder.path(), {.index = mr::index::off}) | mr::map(prepare_but({})) |
                            mr::batch<&row_of::label>({.size = 10}),
                        options};
    CHECK(message_of([&] { for (auto& b : session) static_cast<void>(b.size()); })
              .find("no sample of an epoch is valid") != std::string::npos);
  }
}

TEST_CASE("a damaged shard without an index ends early, and the pass continues with the next one") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  std::filesystem::resize_file(folder / "s-1.tar", 512 * 2 * 2 * 30 + 700);   // in the middle of a sample
  const auto run = [&](mr::damage_options o, int threads, std::uint64_t epoch_batches, const std::string& resume) {
    auto options = quiet(threads, epoch_batches > 0 ? 3 : 1);
    options.on_damage = std::move(o);
    options.epoch_batches = epoch_batches;
    options.resume = resume;
    mr::session session{mr::shards(shards, {.seed = 2, .index = mr::index::off}) | mr::shuffle({.window = 40}) |
                            mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = 10, .drop_last = false}),
                        options};
    std::vector<int> labels;
    std::vector<std::string> positions;
    for (auto& b : session) {
      for (std::size_t i = 0; i < b.size(); ++i) labels.push_back(b.template get<&row_of::label>()[i]);
      positions.push_back(mr::to_text(b.position()));
    }
    CHECK(session.stats().lost_shards >= 1);
    return std::pair(labels, positions);
  };
  const auto [labels, positions] = run({.policy = mr::damage::replace}, 0, 0, "");
  std::set<int> distinct(labels.begin(), labels.end());
  CHECK(distinct.size() == labels.size());
  for (int i = 0; i < 300; ++i)
    if (i < 70 || i >= 140) REQUIRE(distinct.contains(i));
  CHECK(distinct.size() > 230);
  CHECK(distinct.size() < 262);
  for (const int threads : {1, 4}) CHECK(run({.policy = mr::damage::replace}, threads, 0, "").first == labels);
  const auto rest = run({.policy = mr::damage::replace}, 2, 0, positions[3]);
  CHECK(rest.first == std::vector(labels.begin() + 40, labels.end()));
  const auto in_lanes = run({.policy = mr::damage::mask}, 2, 20, "");
  const auto lanes_again = run({.policy = mr::damage::mask}, 1, 20, in_lanes.second[25]);
  CHECK(lanes_again.first == std::vector(in_lanes.first.begin() + 260, in_lanes.first.end()));
  CHECK(message_of([&] { run({.policy = mr::damage::mask, .shards_at_most = 0}, 1, 0, ""); })
            .find("1 shards are damaged, but on_damage allows at most 0") != std::string::npos);
  CHECK(message_of([&] { run({}, 1, 0, ""); }).find("damaged or truncated member") != std::string::npos);
}

TEST_CASE("damage that only the end of a part reveals: the first position whose samples may be wrong") {
  using namespace lane_flows;
  using enum mr::late_data_error::suspect_samples;
  struct outcome {
    mr::late_data_error::suspect_samples suspects = not_said;
    std::uint64_t first = 0;
    std::size_t earliest = 0;   // position of a number of the part
    bool exact = false;
    std::string text{};
  };
  // The numbers of part 7 are 41 .. 60.
  const auto run_into_damage = [](auto&& flow, const mr::session_options& options, std::int64_t divisor = 1) {
    mr::session session{std::move(flow), options};
    outcome o;
    std::size_t position = 0;
    o.earliest = ~std::size_t{0};
    try {
      for (auto& b : session)
        for (const std::int64_t n : b.template get<&numbered_row::number>().host()) {
          if (n / divisor >= 41 && n / divisor <= 60) o.earliest = std::min(o.earliest, position);
          ++position;
        }
      FAIL("no error");
    } catch (const mr::late_data_error& e) {
      o.suspects = e.suspects();
      o.first = e.first_suspect();
      o.exact = e.is_exact();
      o.text = e.what();
    }
    return o;
  };
  numbers_in_shards source = many_shards;
  source.damaged = 7;
  REQUIRE(source.open(7, 0).at == 41);
  REQUIRE(source.open(7, 0).end == 61);
  const auto in_order = [&](std::size_t rows) {
    return mr::from(source, {.seed = 7}) | mr::map(with_draw) | mr::batch<&numbered_row::number>({.size = rows});
  };
  for (const int threads : {0, 1, 3}) {
    CAPTURE(threads);
    const outcome listed = run_into_damage(in_order(1), quiet(threads));
    CHECK(listed.suspects == since);
    CHECK(listed.first == 41);
    CHECK(listed.earliest == 41);
    CHECK(listed.text.find("position 61). Samples of this shard delivered since position 41 (its first sample) may be "
                           "wrong: resume from a point before this position") != std::string::npos);
    const outcome shuffled = run_into_damage(flow(source, 24), quiet(threads));
    CHECK(shuffled.suspects == since);
    CHECK_FALSE(shuffled.exact);
    CHECK(shuffled.first <= shuffled.earliest);
    CHECK(shuffled.first + 60 >= shuffled.earliest);
    for (const std::size_t ranks : {1, 3, 8})
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        auto options = in_epochs(threads, 1, 200);
        options.world = {.rank = rank, .size = ranks};
        if (rank != 7 % ranks) continue;   // lane 7 of 24 may have another part in a later pass, which nobody reaches
        const outcome o = run_into_damage(flow(source, ranks, 1), options);
        CHECK(o.suspects == since);
        CHECK(o.first <= o.earliest);
        CHECK(o.first + 24 >= o.earliest);
      }
    const outcome expanded =
        run_into_damage(mr::from(source, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::expand(copies_of{}) |
                            mr::map(with_draw) | mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 7}),
                        quiet(threads), 1'000);
    CHECK(expanded.suspects == some);
    CHECK(expanded.text.find("already delivered may be wrong: resume from a point before its first sample") !=
          std::string::npos);
  }
  // Resumed after some of them, the others are known to be older.
  auto options = quiet(0);
  options.resume = run_flow(mr::from(source, {.seed = 7}) | mr::map(with_draw) |
                                mr::batch<&numbered_row::number, &numbered_row::draw>({.size = 1}),
                            quiet(0), 50).positions.back();
  CHECK(run_into_damage(in_order(1), options).suspects == some);
  source.lengths[7] = 0;
  CHECK(run_into_damage(in_order(1), quiet(0)).suspects == none);
}
