// Runs over a user's storage equal runs over local files.
#include "cellar.hpp"

#include <millrace/io/cache/cached.hpp>
#include <millrace/lines.hpp>
#include <millrace/shards.hpp>
#include <millrace/sources/list/sidecar_counts.hpp>
#include <millrace/text.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace mr = millrace;
using indexed_runs::delivered;
using indexed_runs::run;
using namespace cellars;

namespace {

/// A storage that records which files will be opened, and which ones are.
class recording_storage final : public mr::storage_interface {
 public:
  explicit recording_storage(std::shared_ptr<cellar> from) : below_(mr::storage(listing_storage{{std::move(from)}})) {}

  std::unique_ptr<mr::stored_file> open(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (name.ends_with(".tar")) opened_.push_back(name);
    return below_->open(name);
  }
  std::optional<mr::file_identity> find(const std::string& name) override { return below_->find(name); }
  std::vector<std::string> list(const std::string& prefix) override { return below_->list(prefix); }
  void expect(std::span<const std::string> names) override {
    const std::lock_guard lock(mutex_);
    expected_.emplace_back(names.begin(), names.end());
  }

  const std::vector<std::string>& opened() const { return opened_; }
  const std::vector<std::vector<std::string>>& expected() const { return expected_; }
  void forget() {
    opened_.clear();
    expected_.clear();
  }

 private:
  mr::storage below_;
  std::mutex mutex_;
  std::vector<std::string> opened_{};
  std::vector<std::vector<std::string>> expected_{};
};

}  // namespace

TEST_CASE("indexed shards of a storage: the batches and resume points of local files, for workers, ranks and resumes") {
  const both_places data;
  for (const int threads : {0, 1, 4}) {
    const delivered here = run(data.local, {.threads = threads});
    const delivered there = run(data.remote, {.threads = threads, .source = data.options()});
    CHECK(here.batches == there.batches);
    CHECK(here.positions == there.positions);
    CHECK(here.stats.digest == there.stats.digest);
    for (const std::size_t cut : {0U, 3U, 9U}) {
      const delivered rest = run(data.remote, {.threads = threads, .resume = here.positions[cut],
                                               .source = data.options()});
      CHECK(rest.batches == std::vector(here.batches.begin() + static_cast<std::ptrdiff_t>(cut) + 1,
                                        here.batches.end()));
    }
  }
  for (const std::size_t ranks : {2U, 4U})
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const delivered here = run(data.local, {.world = {.rank = rank, .size = ranks}});
      const delivered there = run(data.remote, {.world = {.rank = rank, .size = ranks}, .source = data.options()});
      CHECK(here.batches == there.batches);
    }
}

TEST_CASE("shards, lines and token files of a storage equal the local files") {
  both_places data;
  const auto labels_of = [](auto&& flow, int threads) {
    mr::session session{std::move(flow) | mr::shuffle({.window = 20}) | mr::map(indexed_runs::prepare) |
                        mr::batch<&indexed_runs::example::label, &indexed_runs::example::draw>({.size = 10}),
                    quiet(threads, 2)};
    indexed_runs::rows all;
    for (auto& b : session)
      for (std::size_t i = 0; i < b.size(); ++i)
        all.emplace_back(b.template get<&indexed_runs::example::label>().host()[i],
                         b.template get<&indexed_runs::example::draw>().host()[i]);
    return std::pair(all, session.stats().digest);
  };
  const mr::storage at = listing_storage{{data.files}};
  for (const int threads : {0, 1, 4}) {
    const auto disk = labels_of(mr::shards(data.folder / "*.tar", {.seed = 3, .index = mr::index::off}), threads);
    CHECK(disk.first.size() > 400);
    CHECK(disk ==
          labels_of(mr::shards("cellar://box/*.tar", {.seed = 3, .index = mr::index::off, .storage = at}), threads));
    CHECK(disk == labels_of(mr::shards("cellar://box/", {.seed = 3, .index = mr::index::off, .storage = at}), threads));
  }

  std::ofstream(data.folder / "a.txt") << "one\ntwo\n\nfour\n";
  std::ofstream(data.folder / "b.u16", std::ios::binary) << std::string(2'000, 'x');
  data.files->files["cellar://box/a.txt"].text = text_of(data.folder / "a.txt");
  data.files->files["cellar://box/b.u16"].text = text_of(data.folder / "b.u16");
  struct counted {
    std::int32_t length;
  };
  const auto lengths_of = [](auto&& flow, auto length) {
    mr::session session{
        std::move(flow) | mr::map(length) | mr::batch<&counted::length>({.size = 2, .drop_last = false}), quiet(1)};
    std::vector<std::int32_t> all;
    for (auto& b : session)
      for (const std::int32_t n : b.template get<&counted::length>().host()) all.push_back(n);
    return all;
  };
  const auto of_line = [](const mr::line& l) { return counted{static_cast<std::int32_t>(l.text().size())}; };
  CHECK(lengths_of(mr::lines("cellar://box/a.txt", {.storage = at}), of_line) ==
        lengths_of(mr::lines(data.folder / "a.txt"), of_line));
  const auto of_window = [](const mr::packed& p) {
    return counted{static_cast<std::int32_t>(p.ids.size() + p.ids[0])};
  };
  CHECK(lengths_of(mr::token_files("cellar://box/b.u16", {.length = 64, .storage = at}), of_window) ==
        lengths_of(mr::token_files(data.folder / "b.u16", {.length = 64}), of_window));
}

TEST_CASE("an index next to a shard of a storage saves reading the shard, and one in a folder helps the next start") {
  const both_places data;
  std::uint64_t all = 0;
  for (const auto& [name, file] : data.files->files) all += file.text.size();
  const auto started = [&](const mr::shards_options& o) {
    data.files->shard_bytes = 0;
    load_indexes(data.remote, o);
    return data.files->shard_bytes.load();
  };
  CHECK(started(data.options()) > all / 20);   // headers are read
  const temporary_folder folder;
  mr::shards_options in_folder = data.options();
  in_folder.index_folder = folder.path();
  CHECK(started(in_folder) > all / 20);
  CHECK(started(in_folder) == 0);
  data.copy_indexes();
  CHECK(started(data.options()) == 0);
  CHECK(run(data.local, {}).positions == run(data.remote, {.source = data.options()}).positions);
  auto& index = data.files->files["cellar://box/s0-0.tar.millrace-index"].text;
  index[index.size() / 2] ^= 1;   // a damaged one is rebuilt when the shard is first read
  CHECK(run(data.local, {}).batches == run(data.remote, {.source = data.options()}).batches);
  auto& shards = data.files->files;
  REQUIRE(shards.at("cellar://box/s0-0.tar").text.size() != shards.at("cellar://box/s41-0.tar").text.size());
  index = shards.at("cellar://box/s41-0.tar.millrace-index").text;   // as is one of a shard of another size
  CHECK(message_of([&] { (void)run(data.remote, {.source = data.options()}); })
            .find("the shard does not match the index next to it: got ") != std::string::npos);
  shards.at("cellar://box/s0-0.tar.millrace-index").text = "no index";   // is rebuilt at the start
  CHECK(run(data.local, {}).batches == run(data.remote, {.source = data.options()}).batches);
}

TEST_CASE("a file that a storage lacks, replaces or cuts is one error that names it") {
  const both_places data;
  const mr::storage plain = plain_storage{data.files}, listing = listing_storage{{data.files}};
  CHECK(message_of([&] { (void)mr::shards("s3://bucket/a.tar", {.index = mr::index::off}); }).find("needs a storage") !=
        std::string::npos);
  CHECK(message_of([&] { (void)mr::shards("cellar://box/{a,b,c,d}.tar", {.index = mr::index::off, .storage = plain}); })
            .find("the storage lacks 4 of 4 files: 'cellar://box/a.tar', 'cellar://box/b.tar', 'cellar://box/c.tar', "
                  "...") != std::string::npos);
  CHECK(message_of([&] { load_indexes("cellar://box/none.tar", {.storage = plain}); })
            .find("the storage does not contain this file") != std::string::npos);
  CHECK(message_of([&] { (void)mr::shards("cellar://box/*.tar", {.index = mr::index::off, .storage = plain}); })
            .find("cannot list its files") != std::string::npos);
  CHECK(message_of([&] { (void)mr::shards("cellar://box/*.zip", {.index = mr::index::off, .storage = listing}); })
            .find("no file in the storage matches 'cellar://box/*.zip'") != std::string::npos);

  auto flow = mr::shards(data.remote, data.options()) | mr::map(indexed_runs::prepare) |
              mr::batch<&indexed_runs::example::label>({.size = 8});
  load_indexes_of(flow);
  for (auto& [name, file] : data.files->files) file.version = "2";
  const auto run_all = [](auto&& of) {
    mr::session session{std::move(of), quiet(1)};
    for (auto& b : session) static_cast<void>(b.size());
  };
  const std::string replaced = message_of([&] { run_all(std::move(flow)); });
  CHECK(replaced.find("the shard was replaced since this program started") != std::string::npos);
  CHECK(replaced.find("cellar://box/s") != std::string::npos);

  data.files->cut_at = 3'000;
  const std::string cut = message_of([&] {
    run_all(mr::shards("cellar://box/s41-0.tar", {.index = mr::index::off, .storage = listing}) |
            mr::map(indexed_runs::prepare) | mr::batch<&indexed_runs::example::label>({.size = 8}));
  });
  CAPTURE(cut);
  CHECK(cut.find("the file ends too early: expected the") != std::string::npos);
}

TEST_CASE("a shard of a storage without end marker is compared with the counts in this storage") {
  const both_places data;
  const mr::storage at = listing_storage{{data.files}};
  const std::string shard = "cellar://box/s41-0.tar";
  std::string& text = data.files->files[shard].text;
  text.resize(text.size() - 1'024);
  const auto read = [&](std::size_t count) {
    data.files->files["cellar://box/sizes.json"].text = "{\"s41-0.tar\": " + std::to_string(count) + "}";
    return message_of([&] {
      mr::session session{mr::shards(shard, {.index = mr::index::off, .storage = at}) |
                              mr::map(indexed_runs::prepare) | mr::batch<&indexed_runs::example::label>({.size = 8}),
                          quiet(1)};
      for (auto& batch : session) CHECK(batch.size() == 8);
    });
  };
  CHECK(read(90) == "no error");
  const std::string refused = read(91);
  CAPTURE(refused);
  CHECK(refused.find("cellar://box/sizes.json") != std::string::npos);
}

TEST_CASE("counts and lists of keys are read from a storage too") {
  const both_places data;
  const mr::storage at = listing_storage{{data.files}};
  data.files->files["cellar://box/sizes.json"].text = R"({"s0-0.tar": 40, "s40-0.tar": 1})";
  data.files->files["cellar://box/part.txt"].text = "k3\nk50\n";
  const std::vector<std::string> shards{"cellar://box/s0-0.tar", "cellar://box/s40-0.tar", "cellar://box/s41-0.tar"};
  const auto counts = mr::sidecar_counts(shards, {.storage = at});
  CHECK(counts == std::vector<std::optional<std::uint64_t>>{40, 1, std::nullopt});
  mr::shards_options choice = data.options();
  choice.only = mr::keys_from("cellar://box/part.txt", {.storage = at});
  const delivered two = run(data.remote, {.epochs = 1, .global_batch = 2, .source = choice});
  CHECK(two.all_rows().size() == 2);
}

TEST_CASE("a storage receives the ranges of all reads before any of them") {
  for (const std::size_t window : {1, 64, 4096}) {   // with a small window single samples are read, else blocks
    const both_places data;
    data.copy_indexes();
    const auto flow = [&] {
      return mr::shards(data.remote, data.options()) | mr::shuffle({.window = window}) |
             mr::map(indexed_runs::prepare) | mr::batch<&indexed_runs::example::label>({.size = 8});
    };
    for (const int threads : {0, 2}) {
      std::size_t samples = 0;
      for (auto& b : mr::session{flow(), {.threads = threads, .notice = mr::quiet}}) samples += b.size();
      CHECK(samples == 208);
    }
    CHECK(data.files->announced_reads.load() >= 6);
    CHECK(data.files->surprise_reads.load() == 0);
  }
  const both_places data;
  std::size_t samples = 0;
  for (auto& b : mr::session{mr::shards(data.remote, {.index = mr::index::off, .storage = data.options().storage}) |
                                 mr::map(indexed_runs::prepare) | mr::batch<&indexed_runs::example::label>({.size = 8}),
                             {.notice = mr::quiet}})
    samples += b.size();
  CHECK(samples == 208);
  CHECK(data.files->surprise_reads.load() == 0);
}

TEST_CASE("larger samples of a storage are fetched with their neighbors, by several threads, each byte once") {
  const temporary_folder folder;
  for (int shard = 0; shard < 4; ++shard) {
    mr::shard_writer out({.pattern = folder / ("s" + std::to_string(shard) + "-%d.tar")});
    for (int i = 0; i < 100; ++i)
      out.write("k" + std::to_string(shard) + "-" + std::to_string(i),
                {{"cls", std::to_string(i)}, {"bin", std::string(40'000, static_cast<char>('a' + i % 26))}});
    out.close();
  }
  const auto files = std::make_shared<cellar>(folder.path());
  std::uint64_t all = 0;
  for (const auto& [name, file] : files->files) all += file.text.size();
  const auto flow = mr::shards("cellar://box/", {.storage = listing_storage{{files}}, .notice = mr::quiet}) |
                    mr::shuffle({.window = 64}) | mr::map(indexed_runs::prepare) |
                    mr::batch<&indexed_runs::example::label>({.size = 8});
  load_indexes_of(flow);
  files->shard_bytes = files->announced_reads = 0;
  auto o = quiet(2);
  o.io_threads = 4;
  std::size_t samples = 0;
  mr::session session{flow, o};
  for (auto& b : session) samples += b.size();
  CHECK(samples == 400);
  // The first batch does not wait for its neighbors, which are read again later.
  CHECK(files->shard_bytes.load() < all + all / 3);
  CHECK(files->announced_reads.load() < 150);
  CHECK(files->surprise_reads.load() == 0);
}

TEST_CASE("a storage that refuses its shards is asked once for each of them, and the run ends") {
  struct given_up {
    std::shared_ptr<cellar> from;
    std::shared_ptr<std::atomic<bool>> down;
    std::shared_ptr<std::map<std::string, int>> requests;

    std::unique_ptr<cellar_file> open(const std::string& name) const {
      if (*down && name.ends_with(".tar")) {
        const std::lock_guard lock(from->mutex);
        ++(*requests)[name];
        throw mr::io_error("cannot read the object", "Wait", {.shard = name});
      }
      return plain_storage{from}.open(name);
    }
  };
  const both_places data;
  data.copy_indexes();
  const given_up at{data.files, std::make_shared<std::atomic<bool>>(false),
                    std::make_shared<std::map<std::string, int>>()};
  const std::vector<std::string> shards{"cellar://box/s0-0.tar", "cellar://box/s41-0.tar"};
  auto flow = mr::shards(shards, {.storage = at}) |
              mr::shuffle({.window = 64}) | mr::map(indexed_runs::prepare) |
              mr::batch<&indexed_runs::example::label>({.size = 8});
  *at.down = true;
  auto o = quiet(1);
  o.io_threads = 1;
  CHECK(message_of([&] {
          mr::session session{std::move(flow), o};
          for (auto& b : session) static_cast<void>(b.size());
        }).find("cannot read the object (shard cellar://box/s") != std::string::npos);
  CHECK(at.requests->size() <= 2);
  for (const auto& [name, times] : *at.requests) CHECK(times == 1);
}

TEST_CASE("a cached storage delivers the batches of local files, and the second run reads no byte of the storage") {
  const both_places data;
  const temporary_folder disk;
  const delivered here = run(data.local, {.threads = 2});
  for (const bool again : {false, true}) {
    const mr::cached cached(mr::storage(listing_storage{{data.files}}), {.folder = disk.path(), .keep_free_share = 0});
    data.files->shard_bytes = 0;
    const delivered there = run(data.remote, {.threads = 2, .source = {.storage = cached}});
    CHECK(here.batches == there.batches);
    CHECK(here.positions == there.positions);
    CHECK((data.files->shard_bytes == 0) == again);
    CHECK((cached.statistics().share() == 1) == again);
  }
  for (auto& [name, file] : data.files->files) file.version = "2";   // replaced: other blocks
  const mr::cached cached(mr::storage(listing_storage{{data.files}}), {.folder = disk.path(), .keep_free_share = 0});
  CHECK(here.batches == run(data.remote, {.threads = 2, .source = {.storage = cached}}).batches);
  CHECK(data.files->shard_bytes > 0);
}

TEST_CASE("sources announce the shards that they will open to the storage, pass by pass") {
  const both_places data;
  const auto recording = std::make_shared<recording_storage>(data.files);
  const mr::storage at(recording);
  const auto run_all = [&](auto&& flow, int epochs) {
    auto o = quiet(1, epochs);
    o.io_threads = 1;
    mr::session session{std::move(flow) | mr::batch<&indexed_runs::example::label>({.size = 10}), o};
    for (auto& b : session) static_cast<void>(b.size());
  };
  const auto joined = [&] {
    std::vector<std::string> all;
    for (const auto& list : recording->expected()) all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  run_all(mr::shards("cellar://box/", {.seed = 3, .index = mr::index::off, .storage = at}) |
              mr::map(indexed_runs::prepare),
          1);
  CHECK(recording->expected().size() == 1);
  CHECK(recording->opened() == joined());
  recording->forget();
  run_all(mr::shards("cellar://box/", {.seed = 3, .index = mr::index::off, .storage = at}) |
              mr::shuffle({.window = 20}) | mr::map(indexed_runs::prepare),
          2);
  CHECK(recording->expected().size() == 2);
  CHECK(recording->opened() == joined());
  const std::set<std::string> all_shards(recording->opened().begin(), recording->opened().end());
  CHECK(all_shards.size() == data.files->files.size());

  const auto opened = [&](const indexed_runs::run_options& o) {
    recording->forget();
    run(data.remote, o);
    const auto names = joined();
    return std::set<std::string>(names.begin(), names.end());
  };
  const mr::shards_options there{.storage = at};
  std::set<std::string> with_samples = all_shards;
  std::erase_if(with_samples, [](const std::string& name) { return name.find("empty") != std::string::npos; });
  CHECK(opened({.epochs = 1, .lanes = 6, .drop_last = false, .source = there}) == with_samples);
  const std::size_t lists = recording->expected().size();
  CHECK(lists > 1);   // one of each lane
  auto both = opened({.epochs = 1, .world = {.rank = 0, .size = 2}, .lanes = 6, .drop_last = false, .source = there});
  CHECK(recording->expected().size() == lists / 2);
  both.merge(opened({.epochs = 1, .world = {.rank = 1, .size = 2}, .lanes = 6, .drop_last = false, .source = there}));
  CHECK(both == with_samples);
  CHECK(opened({.epochs = 3, .lanes = 6, .drop_last = false, .source = there}) == with_samples);
  CHECK(recording->expected().size() == 3 * lists);
  const delivered full = run(data.remote, {.epochs = 1, .source = there});
  CHECK(opened({.epochs = 1, .resume = full.positions[full.positions.size() - 2], .source = there}).size() <
        with_samples.size());
}
