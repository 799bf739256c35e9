// Sessions over every source shuffle like a sliding window over the complete pass, and like a complete shuffle if the
// window covers the data set. order/shuffle_quality_test.cpp compares the orders alone, in many more configurations.
#include "../../temporary_folder.hpp"
#include "../order/shuffle_measures.hpp"
#include "quiet_sessions.hpp"

#include <millrace/millrace.hpp>
#include <millrace/mix.hpp>
#include <millrace/shards.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using shuffle_measures::comparison;
using shuffle_measures::data_set;
using shuffle_measures::order;

namespace {

struct number {
  std::int32_t id;
};

number number_in(const mr::record& r) { return {r["id"].as<std::int32_t>()}; }

/// A data set of the numbers from 0, in tars, in text files and in files of tokens.
struct folder_of_numbers {
  explicit folder_of_numbers(const data_set& of) : data(of) {
    const std::vector<std::uint64_t> starts = of.starts();
    for (std::uint64_t s = 0; s < of.shards; ++s) {
      const std::string name = folder / std::string(1, static_cast<char>('a' + s));
      mr::shard_writer shard({.pattern = name + "-%d.tar"});
      std::ofstream lines(name + ".txt"), tokens(name + ".u16", std::ios::binary);
      for (std::uint64_t i = starts[s]; i < starts[s + 1]; ++i) {
        shard.write("k" + std::to_string(10'000 + i), {{"id", std::to_string(i)}});
        lines << i << '\n';
        const auto token = static_cast<std::uint16_t>(i);
        tokens.write(reinterpret_cast<const char*>(&token), sizeof token);
      }
      shard.close();
    }
  }
  data_set data;
  temporary_folder folder{};
};

/// Two epochs, merged from all ranks.
template <class MakeFlow>
std::pair<order, order> epochs(const MakeFlow& flow, mr::session_options options, std::size_t samples) {
  std::pair<order, order> all{order(samples), order(samples)};
  const std::size_t ranks = options.world.value().size;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    options.world->rank = rank;
    std::size_t at[2] = {};
    mr::session run{flow(), options};
    for (auto& b : run) {
      std::size_t& next = at[b.epoch()];
      for (const std::int32_t id : b.template get<&number::id>().host())
        (b.epoch() == 0 ? all.first : all.second).at(next++ * ranks + rank) = static_cast<std::uint64_t>(id);
    }
  }
  return all;
}

mr::session_options two_epochs(std::uint64_t epoch_batches = 0, std::size_t ranks = 1) {
  mr::session_options o = quiet(0, 2);
  o.epoch_batches = epoch_batches;
  o.world = {.rank = 0, .size = ranks};
  return o;
}

}  // namespace

TEST_CASE("shuffles: sessions over every source equal a sliding window, or a complete shuffle") {
  const std::size_t seeds = shuffle_measures::seeds(60);
  const auto batch = mr::batch<&number::id>({.size = 4});
  const auto of_number = mr::map([](std::int32_t id) { return number{id}; });
  for (const data_set data : {data_set{40, 2}, data_set{100, 1}, data_set{100, 5}}) {
    const folder_of_numbers files(data);
    const std::string tars = files.folder / "*.tar", texts = files.folder / "*.txt", tokens = files.folder / "*.u16";
    for (const std::uint64_t window : {std::uint64_t{20}, data.samples, std::uint64_t{1'000}}) {
      const auto compare = [&](const char* source, std::uint64_t epoch_batches, std::size_t ranks, const auto& flow) {
        comparison all(source);
        all.add(data, window, seeds, [&](std::uint64_t seed) {
          return epochs([&] { return flow(seed) | batch; }, two_epochs(epoch_batches, ranks), data.samples);
        });
      };
      const auto shuffle = mr::shuffle({.window = window});
      const auto indexed = [&](std::uint64_t seed) {
        return mr::shards(tars, {.seed = seed}) | shuffle | mr::map(number_in);
      };
      const auto streamed = [&](std::uint64_t seed) {
        return mr::shards(tars, {.seed = seed, .index = mr::index::off}) | shuffle | mr::map(number_in);
      };
      compare("indexed shards", 0, 1, indexed);
      {
        comparison all("indexed shards on 2 ranks");
        all.add(data, window, seeds, [&](std::uint64_t seed) {
          return epochs([&] { return indexed(seed) | mr::batch<&number::id>({.size = 2}); }, two_epochs(0, 2),
                        data.samples);
        });
      }
      compare("indexed shards, batches counted", data.samples / 4, 1, indexed);
      compare("shards", 0, 1, streamed);
      compare("shards, batches counted", data.samples / 4, 1, streamed);
      compare("lines", 0, 1, [&](std::uint64_t seed) {
        return mr::lines(texts, {.seed = seed}) | shuffle |
               mr::map([](const mr::line& l) { return number{std::stoi(std::string(l.text()))}; });
      });
      compare("token_files", 0, 1, [&](std::uint64_t seed) {
        return mr::token_files(tokens, {.length = 1, .seed = seed}) | shuffle |
               mr::map([](const mr::packed& p) { return number{static_cast<std::int32_t>(p.ids[0])}; });
      });
      compare("mix", 0, 1, [&](std::uint64_t seed) {
        return mr::mix({.seed = seed}, mr::weighted{mr::shards(tars, {.index = mr::index::off}) | shuffle, 1}) |
               mr::map(number_in);
      });
      compare("indexed mix", 0, 1, [&](std::uint64_t seed) {
        return mr::mix({.seed = seed}, mr::weighted{mr::shards(tars) | shuffle, 1}) | mr::map(number_in);
      });
      if (data.shards > 1) continue;
      const std::vector<std::int32_t> ids = [&] {
        std::vector<std::int32_t> all(data.samples);
        std::iota(all.begin(), all.end(), 0);
        return all;
      }();
      compare("from", 0, 1, [&](std::uint64_t seed) { return mr::from(ids, {.seed = seed}) | shuffle | of_number; });
      compare("later shuffle", 0, 1,
              [&](std::uint64_t seed) { return mr::from(ids, {.seed = seed}) | of_number | shuffle; });
    }
  }
}

TEST_CASE("shuffles: class-sorted input and a window of all samples lead to mixed first batches") {
  const data_set data{2'000, 2};   // ten classes of 200
  const folder_of_numbers files(data);
  const auto largest_class = [&](auto flow) {
    mr::session run{std::move(flow) | mr::batch<&number::id>({.size = 100}), quiet(2)};
    const auto first = run.next();
    std::vector<int> classes(10);
    for (const std::int32_t id : first.template get<&number::id>().host())
      ++classes[static_cast<std::size_t>(id / 200)];
    return *std::max_element(classes.begin(), classes.end());
  };
  const auto shuffle = mr::shuffle({.window = 2'000});
  CHECK(largest_class(mr::shards(files.folder / "*.tar", {.index = mr::index::off}) | shuffle | mr::map(number_in)) <
        26);
  CHECK(largest_class(mr::shards(files.folder / "*.tar") | shuffle | mr::map(number_in)) < 26);
  CHECK(largest_class(mr::shards(files.folder / "*.tar", {.index = mr::index::off}) | mr::map(number_in) | shuffle) <
        26);
  CHECK(largest_class(mr::lines(files.folder / "*.txt") | shuffle | mr::map([](const mr::line& l) {
          return number{std::stoi(std::string(l.text()))};
        })) < 26);
}

TEST_CASE("shuffles: cut anywhere, a run whose window covers the data set continues as without a cut") {
  const data_set data{40, 2};
  const folder_of_numbers files(data);
  for (const std::uint64_t window : {20U, 39U, 40U, 1'000U})
    for (const bool later : {false, true}) {
      const auto run = [&](const std::string& resume, std::size_t batches) {
        auto options = quiet(1, 3);
        options.resume = resume;
        std::pair<std::vector<std::int32_t>, std::string> got;
        const auto loop = [&](auto flow) {
          mr::session session{std::move(flow) | mr::batch<&number::id>({.size = 4}), options};
          for (std::size_t b = 0; b < batches; ++b) {
            const auto next = session.next();
            if (!next) break;
            for (const std::int32_t id : next.template get<&number::id>().host()) got.first.push_back(id);
            got.second = mr::to_text(next.position());
          }
        };
        const auto source = mr::shards(files.folder / "*.tar", {.seed = 5, .index = mr::index::off});
        if (later) loop(source | mr::map(number_in) | mr::shuffle({.window = window}));
        else loop(source | mr::shuffle({.window = window}) | mr::map(number_in));
        return got;
      };
      const std::vector<std::int32_t> all = run("", 1'000).first;
      REQUIRE(all.size() == 120);
      for (std::size_t cut = 1; cut < 30; ++cut) {
        CAPTURE(window);
        CAPTURE(cut);
        CHECK(run(run("", cut).second, 1'000).first == std::vector(all.begin() + 4 * std::ptrdiff_t(cut), all.end()));
      }
    }
}

// Resume points of versions in which the quality of a shuffle depended on the number of lanes: runs whose window covers
// the data set continue in the old order. Those versions wrote the sequences.
namespace {

number of_record(const mr::record& r) { return {r["id"].as<std::int32_t>()}; }

using ids = std::vector<std::int32_t>;

/// 40 samples in eight shards.
std::string write_shards(const temporary_folder& folder) {
  mr::shard_writer out({.pattern = folder / "s-%d.tar", .max_samples = 5});
  for (int i = 0; i < 40; ++i) out.write("k" + std::to_string(10 + i), {{"id", std::to_string(i)}});
  out.close();
  return folder / "*.tar";
}

enum class kind { streamed, later, mixed, indexed_mix, indexed, of_two_ranks };

/// The rows of the first batches, at most as many as given, and the text of the last one.
std::pair<ids, std::string> run(kind k, const std::string& tars, const std::string& resume, std::size_t batches) {
  auto options = quiet(1, 2);
  options.resume = resume;
  if (k == kind::of_two_ranks) {
    options.world = {.rank = 0, .size = 2};
    options.epoch_batches = 10;
  }
  std::pair<ids, std::string> all;
  const auto loop = [&](auto flow, std::size_t size) {
    mr::session session{std::move(flow) | mr::batch<&number::id>({.size = size}), options};
    for (std::size_t b = 0; b < batches; ++b) {
      const auto next = session.next();
      if (!next) break;
      for (const std::int32_t id : next.template get<&number::id>().host()) all.first.push_back(id);
      all.second = mr::to_text(next.position());
    }
  };
  const auto shuffle = mr::shuffle({.window = 64});
  const auto map = mr::map(of_record);
  switch (k) {
    case kind::streamed: loop(mr::shards(tars, {.seed = 5, .index = mr::index::off}) | shuffle | map, 4); break;
    case kind::later: loop(mr::shards(tars, {.seed = 5, .index = mr::index::off}) | map | shuffle, 4); break;
    case kind::mixed:
      loop(mr::mix({.seed = 5}, mr::weighted{mr::shards(tars, {.index = mr::index::off}) | shuffle, 1}) | map, 4);
      break;
    case kind::indexed_mix:
      loop(mr::mix({.seed = 5}, mr::weighted{mr::shards(tars) | shuffle, 1}) | map, 4);
      break;
    case kind::indexed: loop(mr::shards(tars, {.seed = 5}) | shuffle | map, 4); break;
    case kind::of_two_ranks: loop(mr::shards(tars, {.seed = 5, .index = mr::index::off}) | shuffle | map, 2); break;
  }
  return all;
}

struct frozen_run {
  kind what;
  std::string after_three_batches;
  ids rest;
};
const frozen_run frozen_runs[] = {
    {kind::streamed,
     "millrace version=4 seed=5 epoch=0 position=12 lanes=1 window=64 global_batch=4 epoch_batches=0 "
     "drop_last=1 data=9cf62a51f9fc3e64 times=fa6b3e33 step=3 pass=0 place=11 rows=1 part=0 first=0 ranks=0 "
     "rank=0 crc32c=69ebd4fd",
     {10, 29, 18, 0, 6, 9, 13, 35, 4, 19, 8, 2, 3, 37, 27, 36, 30, 11, 24, 12, 14, 32, 5, 7, 22, 23, 33, 31, 28, 14,
      39, 13, 27, 16, 36, 15, 10, 35, 3, 18, 21, 12, 9, 32, 38, 4, 11, 26, 30, 37, 33, 29, 34, 31, 0, 25, 2, 22, 24,
      17, 1, 20, 7, 19, 23, 6, 8, 5}},
    {kind::later,
     "millrace version=4 seed=5 epoch=0 position=12 lanes=1 window=0 global_batch=4 epoch_batches=0 "
     "drop_last=1 data=9cf62a51f9fc3e64 times=39e5106c step=3 pass=0 place=0 rows=12 part=0 first=0 ranks=1 "
     "rank=0 crc32c=d90b4820",
     {15, 24, 13, 0, 36, 39, 18, 5, 4, 14, 38, 2, 3, 7, 22, 6, 30, 16, 29, 17, 19, 32, 35, 37, 27, 28, 33, 31, 3, 9,
      14, 8, 2, 16, 11, 15, 5, 10, 23, 18, 31, 7, 39, 27, 13, 24, 6, 1, 25, 12, 28, 4, 29, 26, 20, 0, 22, 32, 34, 17,
      21, 30, 37, 19, 33, 36, 38, 35}},
    {kind::mixed,
     "millrace version=4 seed=5 epoch=0 position=12 lanes=1 window=0 global_batch=4 epoch_batches=0 "
     "drop_last=1 data=82a6f5bca719f15d times=e48cdb62 step=3 pass=0 place=0 rows=12 part=0 first=0 ranks=0 "
     "rank=0 crc32c=4b0eb507",
     {17, 30, 7, 1, 11, 34, 24, 15, 19, 31, 27, 21, 10, 28, 20, 14, 26, 32, 4, 8, 18, 37, 2, 33, 36, 39, 3, 38, 35,
      6, 26, 29, 28, 5, 36, 24, 0, 7, 19, 9, 31, 20, 1, 12, 4, 25, 8, 2, 34, 17, 14, 39, 38, 11, 33, 37, 18, 10, 27,
      22, 23, 21, 16, 13, 15, 3, 30, 32}},
    {kind::indexed_mix,
     "millrace version=1 seed=5 epoch=0 position=12 lanes=48 window=64 global_batch=4 epoch_batches=0 "
     "drop_last=1 data=0180308eb4bbac60 digest=cc0ad47136343a04 crc32c=97cb9020",
     {17, 18, 19, 5, 6, 7, 8, 9, 30, 31, 32, 33, 34, 0, 1, 2, 3, 4, 20, 21, 22, 23, 24, 35, 36, 37, 38, 39, 5, 6, 7,
      8, 9, 35, 36, 37, 38, 39, 25, 26, 27, 28, 29, 20, 21, 22, 23, 24, 10, 11, 12, 13, 14, 0, 1, 2, 3, 4, 15, 16, 17,
      18, 19, 30, 31, 32, 33, 34}},
    {kind::indexed,
     "millrace version=1 seed=5 epoch=0 position=12 lanes=48 window=64 global_batch=4 epoch_batches=0 "
     "drop_last=1 data=6f2df22131f7099a digest=04bab835c05f9f6a crc32c=9cab2f40",
     {17, 18, 19, 10, 11, 12, 13, 14, 25, 26, 27, 28, 29, 20, 21, 22, 23, 24, 30, 31, 32, 33, 34, 5, 6, 7, 8, 9, 25,
      26, 27, 28, 29, 10, 11, 12, 13, 14, 35, 36, 37, 38, 39, 15, 16, 17, 18, 19, 0, 1, 2, 3, 4, 30, 31, 32, 33, 34,
      20, 21, 22, 23, 24, 5, 6, 7, 8, 9}},
    {kind::of_two_ranks,
     "millrace version=4 seed=5 epoch=0 position=12 lanes=8 window=64 global_batch=4 epoch_batches=10 "
     "drop_last=1 data=9cf62a51f9fc3e64 times=afdee95e step=3 pass=0 place=0 rows=0 part=0 first=0 ranks=2 rank=2 "
     "crc32c=2e17afc2",
     {27, 32, 1, 16, 28, 33, 3, 17, 25, 31, 4, 18, 29, 34, 27, 36, 1, 21, 26, 35, 0, 20, 28, 37, 4, 22, 25, 39, 3,
      23, 29, 38, 2, 24}},
};

}  // namespace

TEST_CASE("older shuffles: a run whose window covers the data set continues in the order of its resume point") {
  const temporary_folder folder;
  const std::string tars = write_shards(folder);
  for (const frozen_run& frozen : frozen_runs) {
    CAPTURE(static_cast<int>(frozen.what));
    const std::string today = run(frozen.what, tars, "", 3).second;
    mr::position from = mr::parse_position(frozen.after_three_batches);
    from.data_set = mr::parse_position(today).data_set;   // that of a mix depends on the folder
    const std::string text = mr::to_text(from);
    CHECK(run(frozen.what, tars, text, 1'000).first == frozen.rest);
    // Resume points of the run that continues keep the order, too.
    const std::string later = run(frozen.what, tars, text, 4).second;
    const std::size_t batch = frozen.what == kind::of_two_ranks ? 2 : 4;
    CHECK(run(frozen.what, tars, later, 1'000).first ==
          ids(frozen.rest.begin() + static_cast<std::ptrdiff_t>(4 * batch), frozen.rest.end()));
    // A run from the start has the current order.
    CHECK(run(frozen.what, tars, today, 1'000).first != frozen.rest);
  }
}
