// Runs that continue after damaged samples: which rows they fill, with which content, and that nothing else changes.
#include "damaged_runs.hpp"

#include <millrace/sources/keys_from.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace mr = millrace;
using namespace damaged_runs;

namespace {

/// The result of replacing or masking in a clean run, computed slowly and apart.
std::vector<batch_trace> expected_of(const std::vector<batch_trace>& clean, const std::set<int>& bad,
                                     mr::damage policy) {
  std::vector<batch_trace> all = clean;
  for (std::size_t b = 0; b < clean.size(); ++b)
    for (std::size_t row = 0; row < clean[b].size(); ++row) {
      if (!bad.contains(clean[b][row].label)) continue;
      std::size_t best = row, away = ~std::size_t{0};
      for (std::size_t other = 0; other < clean[b].size(); ++other) {
        const std::size_t distance = other > row ? other - row : row - other;
        if (policy == mr::damage::replace && distance % lanes == 0 && distance < away &&
            !bad.contains(clean[b][other].label)) {
          best = other;
          away = distance;
        }
      }
      if (best != row) all[b][row] = clean[b][best];
      else all[b][row] = {0, {}, true, false, clean[b][row].key};
      all[b][row].valid = best != row;
      all[b][row].replaced = best != row;
    }
  return all;
}

}  // namespace

TEST_CASE("replace and mask equal a slow loop over the clean batches, for all workers, ranks and devices") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace clean = run_with(shards, {.on_damage = {}});
  REQUIRE(clean.batches.size() == 12);
  for (const auto policy : {mr::damage::replace, mr::damage::mask}) {
    for (const std::set<int>& bad : {every(17), every(3), std::set<int>{}, every(100, 0)}) {
      damaged_run o{.bad = bad, .on_damage = {.policy = policy, .at_most_share = 1}, .threads = 0};
      const run_trace first = run_with(shards, o);
      CHECK(first.batches == expected_of(clean.batches, bad, policy));
      for (const int threads : {1, 4}) {
        o.threads = threads;
        o.copying = threads == 4;
        const run_trace d = run_with(shards, o);
        CHECK(d.batches == first.batches);
        CHECK(d.positions == first.positions);
      }
      o.threads = 2;
      o.copying = false;
      for (const std::size_t ranks : {2, 3, 4, 6}) {
        CAPTURE(ranks);
        const run_trace d = run_on_ranks(shards, o, ranks);
        CHECK(d.batches == first.batches);
        CHECK(d.positions == first.positions);
        CHECK(d.stats.replaced == first.stats.replaced);
        CHECK(d.stats.masked == first.stats.masked);
      }
      std::uint64_t replaced = 0, masked = 0;
      for (const batch_trace& b : first.batches)
        for (const row_trace& r : b) {
          replaced += r.replaced;
          masked += !r.valid;
        }
      CHECK(first.stats.replaced == replaced);
      CHECK(first.stats.masked == masked);
      if (policy == mr::damage::mask) CHECK(replaced == 0);
    }
  }
}

TEST_CASE("the digest of a run with damage is that of the clean run less the terms of the damaged positions") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const std::set<int> bad = every(7);
  std::set<int> others;
  for (int i = 0; i < 300; ++i)
    if (!bad.contains(i)) others.insert(i);
  const auto digest = [&](const std::set<int>& without) {
    return run_with(shards, {.bad = without,
                             .on_damage = {.policy = mr::damage::mask, .at_most_share = 1, .in_a_row = 1'000}})
        .stats.digest;
  };
  CHECK(digest(bad) + digest(others) == run_with(shards, {.on_damage = {}}).stats.digest);
  CHECK(digest({}) == run_with(shards, {.on_damage = {}}).stats.digest);
}

TEST_CASE("a run with damage resumes after any batch, and has its short last batches") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  for (const bool drop_last : {true, false}) {
    damaged_run o{.bad = every(5), .drop_last = drop_last};
    const run_trace reference = run_with(shards, o);
    CHECK(reference.batches.size() == (drop_last ? 12 : 14));
    if (!drop_last) {
      const run_trace clean = run_with(shards, {.on_damage = {}, .drop_last = false});
      CHECK(reference.batches == expected_of(clean.batches, o.bad, mr::damage::replace));
    }
    for (std::size_t cut = 0; cut + 1 < reference.batches.size(); cut += 2) {
      o.resume = reference.positions[cut];
      const run_trace rest = run_with(shards, o);
      CHECK(rest.batches == std::vector(reference.batches.begin() + std::ptrdiff_t(cut) + 1, reference.batches.end()));
      CHECK(rest.positions.back() == reference.positions.back());
    }
  }
}

TEST_CASE("payloads that differ from their checksums are damaged samples, neighbors in the same read are not") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace clean = run_with(shards, {.on_damage = {}, .drop_last = false, .epochs = 1});   // adds checksums
  const std::set<int> bad{1, 69, 70, 71, 150, 151, 152, 153, 299};
  for (const int label : bad) {
    const std::string name = folder / ("s-" + std::to_string(label / 70) + ".tar");
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    const std::size_t header = bytes.find("k" + std::to_string(label) + ".cls");
    REQUIRE(header != std::string::npos);
    file.seekp(static_cast<std::streamoff>(header + 512));
    file.put(bytes[header + 512] == '9' ? '8' : '9');   // another label
  }
  for (const auto policy : {mr::damage::replace, mr::damage::mask})
    for (const int threads : {0, 1, 4}) {
      damaged_run o{.on_damage = {.policy = policy, .at_most_share = 1}, .threads = threads, .drop_last = false,
                    .epochs = 1};
      const run_trace d = run_with(shards, o);
      CHECK(d.batches == expected_of(clean.batches, bad, policy));
      CHECK(d.stats.replaced + d.stats.masked == bad.size());
      const run_trace ranks = run_on_ranks(shards, o, 3);
      CHECK(ranks.batches == d.batches);
      CHECK(ranks.positions == d.positions);
    }
  CHECK(message_of([&] { run_with(shards, {.on_damage = {}, .drop_last = false}); }).find("CRC") != std::string::npos);
}

TEST_CASE("a shard that vanishes while it is read costs its samples") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  constexpr std::uint64_t epochs = 40;   // more than the engine reads ahead
  const run_trace clean = run_with(shards, {.on_damage = {}, .epochs = epochs});
  for (const int threads : {0, 2}) {
    auto options = quiet(threads, epochs);
    options.lanes = lanes;
    options.on_damage = {.policy = mr::damage::mask};   // its limits are those of single samples
    options.read_ahead_bytes = 1;
    mr::session session{mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 100}) |
                            mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = global_batch}),
                        options};
    std::size_t masked = 0;
    for (auto& b : session) {
      if (b.step() == 0) std::ofstream(folder / "s-2.tar", std::ios::trunc).close();
      const auto& before = clean.batches[b.step()];
      for (std::size_t i = 0; i < b.size(); ++i) {
        const bool lost = before[i].label / 70 == 2 && b.valid()[i] == 0;
        masked += lost;
        if (!lost) REQUIRE(b.template get<&row_of::label>()[i] == before[i].label);
      }
    }
    CHECK(masked >= 70);   // the samples of the shard in the last epoch, at least
    CHECK(session.stats().masked == masked);
    CHECK(session.stats().lost_shards == 1);
    write_labels(folder);
  }
}

TEST_CASE("the quarantine list has each damaged sample once, whatever epochs, ranks and resumes, and leaves them out") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const std::set<int> bad = every(11);
  damaged_run o{.bad = bad};
  o.on_damage.quarantine = folder / "lists/quarantine";
  const run_trace reference = run_with(shards, o);
  const auto lines_of = [&](const std::string& name) {
    std::ifstream file(folder / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  };
  const auto first = lines_of("lists/quarantine-0.jsonl");
  CHECK(first.size() <= bad.size());
  CHECK(first.size() > bad.size() / 2);   // the last batch of an epoch is dropped, with its rows
  CHECK(first.front().find("\"epoch\": 0") != std::string::npos);
  CHECK(first.front().find("is bad") != std::string::npos);
  o.resume = reference.positions[3];
  run_with(shards, o);
  CHECK(lines_of("lists/quarantine-0.jsonl") == first);
  o.resume.clear();
  run_on_ranks(shards, o, 3);
  const mr::key_list listed = mr::keys_from(folder / "lists/quarantine-*.jsonl");
  for (int label = 0; label < 300; ++label)
    if (!bad.contains(label)) REQUIRE_FALSE(listed.contains("k" + std::to_string(label), "s-0.tar"));
  o = {.bad = bad, .on_damage = {}, .without = listed, .drop_last = false, .epochs = 1};
  if (listed.size() == bad.size()) CHECK(run_with(shards, o).batches.size() == 6);
  // The position in a line is that of the sample.
  auto options = quiet(0, 1);
  options.lanes = lanes;
  mr::session session{mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 100}) |
                          mr::map(prepare_but({})) | mr::batch<&row_of::label>({.size = global_batch}),
                      options};
  for (const std::string& line : first) {
    const auto number = [&](const char* name) { return std::stoul(line.substr(line.find(name) + std::strlen(name))); };
    const std::string key = session.locate(number("\"epoch\": "), number("\"position\": ")).key;
    REQUIRE(line.find("\"key\": \"" + key + "\"") != std::string::npos);
  }
}

TEST_CASE("a shard that is cut after its index was built costs its samples after the cut, on all ranks, and resumes") {
  const temporary_folder folder;
  const std::string shards = write_labels(folder);
  const run_trace clean = run_with(shards, {.on_damage = {}});   // builds the indexes
  const std::string cut_shard = folder / "s-1.tar";
  std::filesystem::resize_file(cut_shard, 512 * 2 * 2 * 30 + 700);
  CHECK(message_of([&] { run_with(shards, {.on_damage = {}}); }).find("damaged or truncated member") !=
        std::string::npos);
  damaged_run o{.threads = 0, .damaged_shards_at_most = 1};
  const run_trace reference = run_with(shards, o);
  CHECK(reference.description.find("1 of 5 shards are damaged: " + cut_shard + " delivers all its 70 samples") !=
        std::string::npos);
  std::set<int> lost;
  for (int label = 70; label < 140; ++label) lost.insert(label);
  for (const batch_trace& b : reference.batches)
    for (const row_trace& r : b) lost.erase(r.label);
  CHECK(lost.size() > 35);
  CHECK(lost.size() < 55);
  CHECK(reference.batches == expected_of(clean.batches, lost, mr::damage::replace));
  for (const std::size_t ranks : {2, 3, 4, 6}) {
    const run_trace d = run_on_ranks(shards, o, ranks);
    CHECK(d.batches == reference.batches);
    CHECK(d.positions == reference.positions);
  }
  o.threads = 4;
  o.resume = clean.positions[0];   // a resume point from before the cut: the same data set
  const run_trace rest = run_with(shards, o);
  CHECK(rest.batches == std::vector(reference.batches.begin() + 1, reference.batches.end()));
  o.resume.clear();
  o.on_damage = {.policy = mr::damage::replace};
  CHECK(run_with(shards, o).batches == reference.batches);   // lost samples do not count for the limits of single ones
  o.on_damage.shards_at_most = 0;
  CHECK(message_of([&] { run_with(shards, o); }).find("1 shards are damaged, but on_damage allows at most 0") !=
        std::string::npos);
  o.on_damage = {.policy = mr::damage::mask};
  std::filesystem::rename(cut_shard, folder / "away");
  const run_trace without_shard = run_with(shards + "/s-{0..4}.tar", o);
  CHECK(without_shard.stats.lost_shards == 1);
  for (std::size_t b = 0; b < clean.batches.size(); ++b)
    for (std::size_t i = 0; i < clean.batches[b].size(); ++i) {
      const row_trace& expected = clean.batches[b][i];
      const row_trace& row = without_shard.batches[b][i];
      REQUIRE(row.valid == (expected.label / 70 != 1));
      if (row.valid) REQUIRE(row == expected);
    }
  CHECK(message_of([&] {
          auto strict = o;
          strict.damaged_shards_at_most = 0;
          run_with(shards + "/s-{0..4}.tar", strict);
        }).find("1 of 5 shards cannot be read") != std::string::npos);
  std::filesystem::rename(folder / "s-1.tar.millrace-index", folder / "away.index");
  CHECK(message_of([&] { run_with(shards + "/s-{0..4}.tar", o); }).find("cannot get the size of the file") !=
        std::string::npos);
  std::filesystem::rename(folder / "away.index", folder / "s-1.tar.millrace-index");
  std::filesystem::rename(folder / "away", cut_shard);
  o.on_damage = {.policy = mr::damage::replace, .at_most_share = 1};
  for (int s = 0; s < 5; ++s)
    if (s != 1) std::filesystem::remove(folder / ("s-" + std::to_string(s) + ".tar.millrace-index"));
  std::filesystem::resize_file(folder / "s-0.tar", 512 * 2 * 2 * 30 + 700);
  CHECK(message_of([&] { run_with(shards, o); }).find("too many shards are damaged: got 2, expected at most 1") !=
        std::string::npos);
  o.damaged_shards_at_most = 2;   // the samples of the first one are no longer known
  const std::string expected = "2 of 5 shards are damaged: " + (folder / "s-0.tar") + " delivers only its first";
  CHECK(run_with(shards, o).description.find(expected) != std::string::npos);
}
