// Runs whose output is frozen: their data, and the batches of a run after a resume point.
//
//   const frozen_data data(folder);                          // shards of numbers and lines, the same bytes everywhere
//   for (const frozen_flow& flow : frozen_flows(data)) {     // "indexed", "mix", "lanes", "packed", ...
//     const frozen_run full = flow.run("");                 // from the start
//     flow.run(full.points[2]).digest;                       // from after its third batch: of the later batches
//   }
//
// freeze.cpp writes their output to tests/system/frozen, frozen_test.cpp compares it.
#pragma once

#include "quiet_sessions.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/millrace.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/mix.hpp>
#include <millrace/text.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

struct frozen_run {
  std::uint64_t batches = 0, rows = 0, digest = 0;   ///< of the delivered batches
  std::vector<std::string> points{};                 ///< the resume point after each batch
};

struct frozen_flow {
  std::string name;
  std::function<frozen_run(const std::string& resume)> run;
};

namespace frozen {

namespace mr = millrace;

/// A file's time is part of an index: all have this one.
inline void set_time(const std::string& path) {
  const timespec at[2] = {{1'700'000'000, 123'456'789}, {1'700'000'000, 123'456'789}};
  if (::utimensat(AT_FDCWD, path.c_str(), at, 0) != 0) throw std::runtime_error("cannot set the time of " + path);
}

inline void add(mr::detail::stream_digest& all, std::uint64_t batch, std::span<const std::byte> bytes) {
  all.add(batch, mr::detail::digest_bytes(bytes));
}

/// Runs it to its end. `columns` is called with the batch and a function that accepts the bytes of each column.
template <class Flow, class Columns>
frozen_run run(Flow flow, mr::session_options options, const std::string& resume, const Columns& columns) {
  options.resume = resume;
  mr::session session{std::move(flow), options};
  frozen_run done;
  mr::detail::stream_digest all;
  for (auto& b : session) {
    columns(b, [&](auto view) { add(all, b.step(), std::as_bytes(view.host())); });
    ++done.batches;
    done.rows += b.size();
    done.points.push_back(mr::to_text(b.position()));
  }
  done.digest = all.value();
  return done;
}

struct numbered {
  std::int32_t number;
  double draw;
};

struct view_of {
  mr::picture pixels;
  std::int32_t label;
};

}  // namespace frozen

/// Shards "a-*.tar" and "b-*.tar" of numbers, files "*.txt" of lines, in a folder that the caller owns.
struct frozen_data {
  std::string folder, pictures;

  explicit frozen_data(std::string of, std::string picture_shard = {})
      : folder(std::move(of)), pictures(std::move(picture_shard)) {
    write_numbers("a", {40, 1, 0, 90, 80});
    write_numbers("b", {25, 60});
    for (int f = 0; f < 4; ++f) {
      const std::string name = folder + "/" + std::to_string(f) + ".txt";
      std::ofstream file(name, std::ios::binary);
      for (int line = 0; line < 20 + 7 * f; ++line)
        file << std::string(std::size_t(1 + line * (f + 3) % 41), static_cast<char>('a' + f)) << '\n';
      file.close();
      frozen::set_time(name);
    }
  }

 private:
  void write_numbers(const std::string& name, const std::vector<int>& counts) const {
    int number = 0;
    for (std::size_t shard = 0; shard < counts.size(); ++shard) {
      const std::string begin = folder + "/" + name + "-" + std::to_string(shard) + "-", path = begin + "0.tar";
      if (counts[shard] == 0) {
        std::ofstream(path, std::ios::binary) << std::string(1'024, '\0');   // an end marker alone
      } else {
        millrace::shard_writer writer({.pattern = begin + "%d.tar"});
        for (int i = 0; i < counts[shard]; ++i, ++number)
          writer.write("k" + std::to_string(number), {{"n", std::to_string(number)},
                                                      {"txt", std::string(std::size_t(number % 7 * 100), 'x')}});
        writer.close();
      }
      frozen::set_time(path);
    }
  }
};

inline std::vector<frozen_flow> frozen_flows(const frozen_data& data) {
  using namespace frozen;
  const auto number = [](const mr::record& r, mr::rng& random) {
    return numbered{r["n"].as<std::int32_t>(), random.uniform()};
  };
  const auto batch = mr::batch<&numbered::number, &numbered::draw>({.size = 24});
  const auto short_batch = mr::batch<&numbered::number, &numbered::draw>({.size = 24, .drop_last = false});
  const auto both = [](auto& b, const auto& take) {
    auto [numbers, draws] = b.columns();
    take(numbers);
    take(draws);
  };
  const std::string a = data.folder + "/a-*.tar", b = data.folder + "/b-*.tar", texts = data.folder + "/*.txt";
  const auto options = [](std::uint64_t epochs, std::size_t lanes = 0, std::uint64_t epoch_batches = 0) {
    mr::session_options o = quiet(2, epochs);
    if (lanes != 0) o.lanes = lanes;
    o.epoch_batches = epoch_batches;
    return o;
  };
  std::vector<frozen_flow> flows;
  flows.push_back({"indexed", [=](const std::string& resume) {
    return run(mr::shards(a, {.seed = 7}) | mr::shuffle({.window = 60}) | mr::map(number) | batch, options(3),
               resume, both);
  }});
  flows.push_back({"indexed_in_order", [=](const std::string& resume) {
    return run(mr::shards(a, {.seed = 7}) | mr::map(number) | short_batch, options(2),
               resume, both);
  }});
  flows.push_back({"indexed_long_epochs", [=](const std::string& resume) {
    return run(mr::shards(a, {.seed = 9}) | mr::shuffle({.window = 60}) | mr::map(number) | batch,
               options(2, 8, 11), resume, both);
  }});
  flows.push_back({"mix", [=](const std::string& resume) {
    return run(mr::mix({.seed = 5}, mr::weighted{mr::shards(a, {.seed = 7}) | mr::shuffle({.window = 40}), 3},
                       mr::weighted{mr::shards(b, {.seed = 8}) | mr::shuffle({.window = 30}), 1}) |
                   mr::map(number) | batch,
               options(2), resume, both);
  }});
  flows.push_back({"one_lane", [=](const std::string& resume) {
                     return run(mr::shards(a, {.seed = 7, .index = mr::index::off}) | mr::shuffle({.window = 60}) |
                                    mr::map(number) | batch,
                                options(3, 1), resume, both);
                   }});
  flows.push_back({"lanes", [=](const std::string& resume) {
                     return run(mr::shards(a, {.seed = 7, .index = mr::index::off}) | mr::shuffle({.window = 60}) |
                                    mr::map(number) | batch,
                                options(3, 3, 10), resume, both);
                   }});
  const auto pair = [](int n, mr::rng& random) { return numbered{n, random.uniform()}; };
  flows.push_back({"list", [=](const std::string& resume) {   // without random access, therefore a stream
    const std::vector<int> all = numbers(150);
    return run(mr::from(std::list<int>(all.begin(), all.end()), {.seed = 3}) | mr::shuffle({.window = 20}) |
                   mr::map(pair) | short_batch,
               options(2), resume, both);
  }});
  flows.push_back({"range", [=](const std::string& resume) {
    return run(mr::from(numbers(150), {.seed = 3}) | mr::shuffle({.window = 20}) | mr::map(pair) | short_batch,
               options(2), resume, both);
  }});
  flows.push_back({"packed", [=](const std::string& resume) {
    const auto tokens = [](const mr::line& l) {
      std::vector<std::uint32_t> all;
      for (const char c : l.text())
        all.push_back(static_cast<std::uint32_t>(all.size() * 3) + static_cast<unsigned char>(c));
      return all;
    };
    return run(mr::lines(texts, {.seed = 4}) | mr::map(tokens) | mr::pack({.length = 32, .separator = 7}) |
                   mr::batch<&mr::packed::ids>({.size = 8}),
               options(2, 1), resume,
               [](auto& rows, const auto& take) { take(rows.template get<&mr::packed::ids>()); });
  }});
  if (!data.pictures.empty())
    flows.push_back({"pictures", [=, shard = data.pictures](const std::string& resume) {
      const auto crop = [](const mr::record& r, mr::rng& random) {
        return view_of{mr::jpeg(r["jpg"]).random_resized_crop(32, random).random_flip(random),
                       r["cls"].as<std::int32_t>()};
      };
      return run(mr::shards(shard, {.seed = 2}) | mr::shuffle({.window = 10}) | mr::map(crop) |
                     mr::batch<&view_of::pixels, &view_of::label>({.size = 6}),
                 options(2), resume, [](auto& rows, const auto& take) {
                   take(rows.template get<&view_of::pixels>());
                   take(rows.template get<&view_of::label>());
                 });
    }});
  return flows;
}
