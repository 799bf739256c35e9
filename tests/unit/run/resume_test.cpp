// Exact order over an index: the same whatever the workers and ranks, and resumed from any batch.
#include "indexed_runs.hpp"

#include <millrace/io/index/format/index_file.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/expand.hpp>

#include <set>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

constexpr std::size_t global_batch = 24;

}  // namespace

TEST_CASE("every epoch delivers each sample once, except those that fill no batch, in another order") {
  const temporary_folder folder;
  const delivered d = run(write_shards(folder), {});
  REQUIRE(d.batches.size() == 24);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int32_t> labels;
    for (std::size_t b = 0; b < 8; ++b) {
      CHECK(d.epochs[8 * epoch + b] == epoch);
      CHECK(d.steps[8 * epoch + b] == 8 * epoch + b);
      for (const auto& [label, draw] : d.batches[8 * epoch + b]) labels.insert(label);
    }
    CHECK(labels.size() == 192);
    CHECK(*labels.rbegin() < samples);
  }
  CHECK(d.batches[0] != d.batches[8]);
}

TEST_CASE("order, draws and digest are the same for every number of workers and of ranks") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const delivered expected = run(shards, {.seed = seed, .threads = 0});
    for (const int threads : {1, 2, 4}) {
      const delivered d = run(shards, {.seed = seed, .threads = threads});
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
    for (const std::size_t ranks : {2, 3, 4, 6, 8, 12}) {
      CAPTURE(ranks);
      const delivered d = run_all_ranks(shards, {.seed = seed}, ranks);
      CHECK(d.batches == expected.batches);
      CHECK(d.positions == expected.positions);
    }
  }
}

TEST_CASE("resumed after any batch of three epochs, the rest is the same as without the interruption") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const std::size_t window : {std::size_t{1}, std::size_t{60}, std::size_t{5'000}}) {
    const delivered full = run(shards, {.window = window});
    for (std::size_t cut = 0; cut + 1 < full.batches.size(); cut += stride(5)) {
      CAPTURE(cut);
      const delivered rest = run(shards, {.resume = full.positions[cut], .window = window});
      REQUIRE(rest.batches.size() == full.batches.size() - cut - 1);
      REQUIRE(std::equal(rest.batches.begin(), rest.batches.end(), full.batches.begin() + static_cast<long>(cut) + 1));
      REQUIRE(std::equal(rest.positions.begin(), rest.positions.end(),
                         full.positions.begin() + static_cast<long>(cut) + 1));
      REQUIRE(rest.steps.front() == cut + 1);
    }
  }
}

TEST_CASE("resumed several times, with other ranks and workers each time, the digest is that of the unbroken run") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered full = run(shards, {});
  std::vector<rows> pieced;
  std::string position;
  const std::size_t worlds[] = {4, 1, 12, 3, 2, 8};
  for (std::size_t turn = 0; pieced.size() < full.batches.size(); ++turn) {
    const std::size_t ranks = worlds[turn % 6];
    const run_options o{.threads = static_cast<int>(turn % 4), .resume = position, .max_batches = 1 + turn % 5};
    const delivered some = run_all_ranks(shards, o, ranks);
    pieced.insert(pieced.end(), some.batches.begin(), some.batches.end());
    position = some.positions.back();
    REQUIRE(position == full.positions[pieced.size() - 1]);   // the digest too
  }
  CHECK(pieced == full.batches);
}

TEST_CASE("a run that continues from an unsummed digest reports that, once, and its samples are still right") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto advice_of = [&](const std::string& resume, const mr::world& ranks) {
    auto options = quiet(1, 3);
    options.world = ranks;
    options.resume = resume;
    const run_options o{.world = ranks, .resume = resume};
    const mr::session session{flow(shards, o), options};
    const std::string text = session.description();
    const std::size_t at = text.find("\nmillrace: the resume point's digest is not the digest of the run: ");
    return at == std::string::npos ? std::string() : text.substr(at);
  };
  const delivered one = run(shards, {.max_batches = 2}), summed = run_all_ranks(shards, {}, 4);
  const delivered share = run(shards, {.world = {.rank = 0, .size = 4}, .max_batches = 2});
  const std::string advice = advice_of(share.positions[1], {.rank = 0, .size = 2});
  CHECK(advice.find("got the share of one of 4 ranks, expected the sum of all") != std::string::npos);
  CHECK(!advice_of(share.positions[1], {}).empty());
  CHECK(advice_of(share.positions[1], {.rank = 1, .size = 2}).empty());   // the other one has reported it
  CHECK(advice_of(summed.positions[1], {.rank = 0, .size = 2}).empty());
  CHECK(advice_of(one.positions[1], {.rank = 0, .size = 2}).empty());
  const delivered rest = run(shards, {.resume = share.positions[1]}), expected = run(shards, {});
  CHECK(std::equal(rest.batches.begin(), rest.batches.end(), expected.batches.begin() + 2));
}

TEST_CASE("a resume point of another seed, window, data set, batch or lane count is refused by name") {
  const temporary_folder folder, other;
  const std::string shards = write_shards(folder);
  const std::string position = run(shards, {.max_batches = 3}).positions.back();
  const auto resumed = [&](const std::string& pattern, run_options o) {
    o.resume = position;
    return [=] { run(pattern, o); };
  };
  CHECK_THROWS_WITH_AS(resumed(shards, {.seed = 8})(), doctest::Contains("the seed was 7 and is 8"), mr::setup_error);
  CHECK_THROWS_WITH_AS(resumed(shards, {.window = 61})(), doctest::Contains("the shuffle window was 60 and is 61"),
                       mr::setup_error);
  mr::shard_writer more({.pattern = folder / "z-%d.tar"});
  more.write("another", {{"cls", "1"}});
  more.close();
  CHECK_THROWS_WITH_AS(resumed(shards, {})(), doctest::Contains("the data set was"), mr::setup_error);
  CHECK_THROWS_WITH_AS(run(shards, {.resume = position.substr(0, 60)}),
                       doctest::Contains("the resume text is not valid"), mr::data_error);
}

TEST_CASE("contradicting options are refused at the start") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto start = [](auto new_flow, mr::session_options options) {
    options.notice = mr::quiet;
    mr::session session{std::move(new_flow), options};
  };
  const auto plain = [&] {
    return mr::shards(shards, {.index = mr::index::off}) | mr::map(prepare) | mr::batch<&example::label>({.size = 4});
  };
  CHECK_THROWS_WITH_AS(start(plain(), {.world = mr::world{.rank = 0, .size = 2}}),
                       doctest::Contains("or use shards() over plain tars"), mr::setup_error);
  const auto filtered = mr::shards(shards, {.index = mr::index::required}) |
                        mr::filter([](const mr::record&) { return true; }) | mr::map(prepare) |
                        mr::batch<&example::label>({.size = 4});
  CHECK_THROWS_WITH_AS(start(filtered, {}), doctest::Contains("one row for each sample"), mr::setup_error);
  CHECK_THROWS_WITH_AS(start(filtered, {}), doctest::Contains("Choose samples by .having, .where or .only"),
                       mr::setup_error);
  CHECK_NOTHROW(start(flow(shards, {}), {.world = mr::world{.rank = 0, .size = 5}}));   // ranks share lanes
  CHECK_THROWS_WITH_AS(start(flow(shards, {}), {.world = mr::world{.rank = 2, .size = 2}}),
                       doctest::Contains("the world is invalid: got rank 2 of 2"), mr::setup_error);
  const std::string end = run(shards, {.epochs = 1}).positions.back();
  CHECK_THROWS_WITH_AS(start(flow(shards, {}), {.epochs = 1, .resume = end}), doctest::Contains("the run is over"),
                       mr::setup_error);
}

TEST_CASE("a bad sample is the error of its batch, after all earlier ones, and its position is named") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto expected = run(shards, {.threads = 0}).batches;
  std::int32_t bad = expected[5][7].first;
  const auto broken = [&](int threads) {
    auto broken_flow = mr::shards(shards, {.seed = 7}) | mr::shuffle({.window = 60}) |
                       mr::map([bad](const mr::record& r) {
                         const auto label = r["cls"].as<std::int32_t>();
                         if (label == bad) throw mr::data_error("bad", "Mend it");
                         return example{label, 0};
                       }) |
                       mr::batch<&example::label>({.size = global_batch});
    mr::session session{std::move(broken_flow), quiet(threads)};
    std::size_t batches = 0;
    try {
      for (auto& b : session) batches += b.size() == global_batch;
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().key == "k" + std::to_string(bad));
      CHECK(e.where().position == 5 * global_batch + 7);
    }
    CHECK(batches == 5);
  };
  for (const int threads : {0, 1, 3}) broken(threads);
}

TEST_CASE("the position in an error is that of locate(), on each rank, after a resume, and in later epochs") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto full = run(shards, {});
  for (const std::size_t rank : {0, 1})
    for (const int threads : {0, 2}) {
      const std::uint64_t epoch = 1, batch = 4, row = 5, position = batch * global_batch + row * 2 + rank;
      const std::int32_t bad = full.batches[8 * epoch + batch][row * 2 + rank].first;
      auto options = quiet(threads, 3);
      options.world = mr::world{.rank = rank, .size = 2};
      options.resume = full.positions[9];   // in epoch 1
      mr::session session{mr::shards(shards, {.seed = 7, .fields = {"cls"}}) | mr::shuffle({.window = 60}) |
                              mr::map([bad](const mr::record& r) {
                                const auto label = r["cls"].as<std::int32_t>();
                                if (label == bad) throw mr::data_error("bad", "Mend it");
                                return example{label, 0};
                              }) |
                              mr::batch<&example::label>({.size = global_batch / 2}),
                          options};
      try {
        for (auto& b : session) CHECK(b.size() == global_batch / 2);
        FAIL("no error");
      } catch (const mr::data_error& e) {
        CHECK(e.where().position == position);
        CHECK(session.locate(epoch, e.where().position).key == e.where().key);
      }
    }
}

TEST_CASE("by an index no window is buffered, so none counts against the budget") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  mr::session session{flow(shards, {.window = std::size_t{1} << 40}), quiet(1, 3)};
  CHECK(session.description().find("shuffle window") == std::string::npos);
}

TEST_CASE("explain returns the sample at a position, before and after it was delivered") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto all = run(shards, {}).batches;
  mr::session session{flow(shards, {}), quiet(1, 3)};
  for (const std::uint64_t epoch : {0, 2})
    for (const std::uint64_t position : {0, 1, 47, 191}) {
      const mr::error_location location = session.locate(epoch, position);
      const std::int32_t label = all[8 * epoch + position / global_batch][position % global_batch].first;
      CHECK(location.key == "k" + std::to_string(label));
      CHECK(location.shard.starts_with(folder / "s"));
      CHECK(location.offset_bytes % 512 == 0);
      CHECK(location.position == position);
    }
  CHECK_THROWS_WITH_AS(session.locate(0, 192), doctest::Contains("an epoch has 192 positions"), mr::setup_error);
}

TEST_CASE("indexes are kept, with the checksums of read samples: a flipped bit is detected the next time") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const auto expected = run(shards, {}).batches;
  CHECK(folder.file_count() == 10);   // five shards, five indexes
  CHECK(run(shards, {}).batches == expected);
  const std::string first = folder / "s0-0.tar";
  const auto written = std::filesystem::last_write_time(first);
  std::fstream(first, std::ios::in | std::ios::out | std::ios::binary).seekp(512).put('9');   // label 0 is now 9
  std::filesystem::last_write_time(first, written);
  CHECK_THROWS_WITH_AS(run(shards, {}), doctest::Contains("k0"), mr::data_error);
}

TEST_CASE("a sample that was changed in place is an error the next time; a changed time is reported in a line") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const delivered full = run(shards, {});
  const std::string first = folder / "s0-0.tar";
  const auto touch = [&](int minutes) {
    std::filesystem::last_write_time(first, std::filesystem::last_write_time(first) + std::chrono::minutes(minutes));
  };
  const auto description = [&] {
    auto options = quiet(1, 3);
    options.resume = full.positions[7];
    return mr::session{flow(shards, {}), options}.description();
  };
  CHECK(description().find("the modification times of") == std::string::npos);
  touch(1);
  const std::string line = description();
  CHECK(line.find("\nmillrace: the modification times of 1 of 5 shards differ from those in their indexes (" +
                  first + "). Check that") != std::string::npos);
  CHECK(description().find("the modification times of") == std::string::npos);   // the index is of that time now
  touch(1);
  CHECK(run(shards, {.resume = full.positions[7]}).batches ==
        decltype(full.batches)(full.batches.begin() + 8, full.batches.end()));
  std::fstream(first, std::ios::in | std::ios::out | std::ios::binary).seekp(512).put('9');   // label 0 is now 9
  touch(1);
  for (int again = 0; again < 2; ++again) try {
      run(shards, {.resume = full.positions[7]});
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.message().starts_with("the sample was changed: got the CRC-32C 0x"));
      CHECK(e.where().shard == first);
      CHECK(e.where().key == "k0");
      CHECK(e.where().offset_bytes == 512);
      CHECK(e.hint().find("remove its index") != std::string::npos);
    }
  std::filesystem::remove(mr::detail::index_path(first));   // as the hint says
  // Keys and labels no longer agree.
  CHECK(run(shards, {.resume = full.positions[7], .keys = false}).batches.size() == 16);
}

TEST_CASE("damaged and compressed shards are refused at the start, by name") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  const std::string first = folder / "s0-0.tar";
  std::filesystem::resize_file(first, 5'000);
  CHECK_THROWS_WITH_AS(run(shards, {}), doctest::Contains("s0-0.tar"), mr::data_error);
  std::ofstream(first, std::ios::binary) << "\x1f\x8b\x08";
  CHECK_THROWS_AS(run(shards, {}), mr::error);
}
