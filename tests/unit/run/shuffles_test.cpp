// Sessions over every source shuffle like a sliding window over the complete pass, and like a complete shuffle if the
// window covers the data set. order/shuffle_matrix_test.cpp compares the orders alone, in many more configurations.
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
