// The mixing that a planned run reports, before it begins and during the run.
#include "../../run/indexed_runs.hpp"

#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/read/run/indexed_run.hpp>

#include <fstream>
#include <map>

namespace mr = millrace;
using namespace indexed_runs;

namespace {

/// Counts of samples, without samples.
struct only_counts {
  using item = mr::record;

  std::vector<std::uint64_t> all;
  const std::vector<std::uint64_t>& counts() const { return all; }
  std::uint64_t fingerprint() const { return 1; }
  std::uint64_t size_bytes() const { return 1; }
  std::uint64_t choice() const { return 0; }
  std::uint64_t id_of(const mr::detail::located_sample& s) const { return s.id(); }
  mr::error_location location_of(const mr::detail::located_sample&) const { return {}; }
  std::string choice_text() const { return {}; }
};
using only_planned = mr::detail::indexed_run<only_counts>;

const auto hundred = std::make_shared<only_counts>(only_counts{std::vector<std::uint64_t>(100, 200)});

/// The largest share of a shard in a batch, counted: the label identifies the shard.
double mean_share(const std::vector<rows>& batches) {
  double sum = 0;
  for (const rows& batch : batches) {
    std::map<int, double> of_shard;
    double most = 0;
    for (const auto& [label, draw] : batch)
      most = std::max(most, ++of_shard[label < 40 ? 0 : label < 41 ? 1 : label < 131 ? 2 : 3]);
    sum += most / static_cast<double>(batch.size());
  }
  return sum / static_cast<double>(batches.size());
}

/// The bytes that this process has read so far.
std::uint64_t read_bytes_so_far() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  counters >> name >> bytes;
  REQUIRE(name == "rchar:");
  return bytes;
}

}  // namespace

TEST_CASE("a poor shuffle is reported once, by one rank, with a window that is good") {
  const mr::detail::indexed_run_options poor{.seed = 1, .window = 200, .rows = 96, .lanes = 6, .epochs = 2};
  const std::string advice = only_planned(hundred, poor).shuffle_advice();
  CAPTURE(advice);
  const std::string before = "; a window of ";
  REQUIRE(advice.find(before) != std::string::npos);
  CHECK(advice.find("is within 10 % of that") != std::string::npos);
  mr::detail::indexed_run_options o = poor;
  o.window = std::stoull(advice.substr(advice.find(before) + before.size()));
  CHECK(only_planned(hundred, o).shuffle_advice().empty());
  const mr::shuffle_statistics good = only_planned(hundred, o).shuffle_quality();
  CHECK(good.expected_share < 1.1 * good.ideal_share * 1.02);
  o = poor;
  o.resume = mr::to_text(only_planned(hundred, poor).after(0));
  CHECK(only_planned(hundred, o).shuffle_advice().empty());
  o = poor;
  o.rows = 48;
  o.world = {.rank = 0, .size = 2};
  CHECK(only_planned(hundred, o).shuffle_advice() == advice);   // for the samples of all ranks together
  o.world.rank = 1;
  CHECK(only_planned(hundred, o).shuffle_advice().empty());
  o = poor;
  o.window = 0;
  CHECK(only_planned(hundred, o).shuffle_advice().empty());   // nobody asked for a shuffle
}

TEST_CASE("the announcement contains the advice") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "s-%d.tar", .max_samples = 10});
  for (int i = 0; i < 200; ++i) shards.write("k" + std::to_string(i), {{"cls", std::to_string(i)}});
  shards.close();
  auto options = quiet(1);
  options.lanes = 2;
  const run_options o{.window = 4, .global_batch = 20};
  const mr::session silent{flow(folder.path(), o), options};
  CHECK(silent.description().find("shuffle quality") == std::string::npos);   // it would have no reader
  options.notice = [](const mr::notice&) {};
  const mr::session session{flow(folder.path(), o), options};
  CHECK(session.description().find("; shuffle quality: ") != std::string::npos);
  CHECK(session.description().find("hardly moves") == std::string::npos);
  options.lanes = 4;
  const mr::session narrow{flow(folder.path(), o), options};
  CHECK(narrow.description().find("\nmillrace: the shuffle hardly moves samples: got a window of 4 for 4 lanes, "
                                  "expected at least 2 samples per lane. Omit session_options::lanes") !=
        std::string::npos);
  options.lanes = 0;
  const mr::session automatic{flow(folder.path(), o), options};
  CHECK(automatic.description().find("hardly moves") == std::string::npos);
}

TEST_CASE("a session's mixing statistics are those of the batches that it delivered") {
  const temporary_folder folder;
  const std::string shards = write_shards(folder);
  for (const int threads : {0, 2}) {
    mr::session session{flow(shards, {}), quiet(threads, 3)};
    std::vector<rows> batches;
    for (auto& b : session) {
      auto& batch = batches.emplace_back();
      for (const std::int32_t label : b.get<&example::label>().host()) batch.emplace_back(label, 0);
    }
    const mr::shuffle_statistics f = session.shuffle_quality();
    CHECK(f.share == doctest::Approx(mean_share(batches)));
    CHECK(f.batches == batches.size());
    CHECK(f.neighbors > 200);
    CHECK(f.expected_share == doctest::Approx(f.share).epsilon(0.1));
    CHECK(f.ideal_share < f.expected_share * 1.1);
    CHECK(f.ideal_share > 0.4);
  }
}

TEST_CASE("each byte of small samples is read once, whatever the shuffle") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "s-%d.tar", .max_samples = 2048});
  constexpr int samples = 5 * 2048;
  for (int i = 0; i < samples; ++i)
    shards.write("k" + std::to_string(i), {{"bin", std::string(2048, 'x')}, {"cls", std::to_string(i)}});
  shards.close();
  std::uint64_t size_bytes = 0;
  for (const auto& shard : std::filesystem::directory_iterator(folder.path())) size_bytes += shard.file_size();
  auto options = quiet(1);
  options.lanes = 8;
  mr::session session{flow(folder.path(), {.window = 2048, .global_batch = 64}), options};
  const std::uint64_t before = read_bytes_so_far();
  std::size_t rows = 0;
  for (auto& b : session) rows += b.size();
  CHECK(rows == samples);
  // The block of a thread that waits long for a core may be gone.
  CHECK(read_bytes_so_far() - before < size_bytes + size_bytes / 2);
}
