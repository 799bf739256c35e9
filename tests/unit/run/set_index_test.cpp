// Runs with a set index: the batches of runs without one, with fewer requests; and errors if it is out of date.
#include "cellar.hpp"

#include <millrace/io/cache/cached.hpp>
#include <millrace/io/index/set/shard_heads.hpp>
#include <millrace/shards.hpp>

#include <millrace/io/index/format/index_format.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/set/indexed_shard.hpp>
#include <millrace/millrace.hpp>

#include <doctest/doctest.h>

namespace mr = millrace;
using indexed_runs::run;
using namespace cellars;

namespace {

constexpr const char* set_file = "cellar://box/set.millrace-index";

/// A storage that trusts a set index, like a remote one.
class believing_storage final : public mr::storage_interface {
 public:
  explicit believing_storage(std::shared_ptr<cellar> from) : below_(mr::storage(listing_storage{{std::move(from)}})) {}

  std::unique_ptr<mr::stored_file> open(const std::string& name) override { return below_->open(name); }
  std::optional<mr::file_identity> find(const std::string& name) override {
    const auto entry = assumed.find(name);
    return entry == assumed.end() ? below_->find(name) : entry->second;
  }
  std::vector<std::string> list(const std::string& prefix) override { return below_->list(prefix); }
  void assume(const std::string& name, const mr::file_identity& identity) override { assumed[name] = identity; }

  std::map<std::string, mr::file_identity> assumed{};

 private:
  mr::storage below_;
};

/// The number of requests of a start, and the opened files.
struct started {
  std::uint64_t finds = 0;
  std::vector<std::string> opened{};
};
started start(const both_places& data, const mr::shards_options& o, const std::string& names) {
  data.files->finds = 0;
  data.files->opened.clear();
  load_indexes(names, o);
  return {data.files->finds.load(), data.files->opened};
}

void write_set_file(const both_places& data, const std::string& of) {
  const auto result = mr::write_set_index(of, data.folder / "set.millrace-index",
                                        {.storage = of == data.local ? mr::storage() : data.options().storage});
  CHECK(result.shards == 5);
  CHECK(result.samples == 211);
  CHECK(result.left_out == 0);
  data.copy("set.millrace-index");
}

/// A storage of many shards with the bytes of one small tar.
struct many_shards {
  explicit many_shards(std::size_t count) {
    const temporary_folder folder;
    mr::shard_writer writer({.pattern = folder / "s%d.tar"});
    for (const std::string name : {"0", "1", "2", "3"}) writer.write(name, {{"cls", name}});
    writer.close();
    tar = text_of(folder / "s0.tar");
    mr::block_pool pool;
    mr::file_source file(folder / "s0.tar");
    auto own = mr::detail::scan_shard(file, pool);
    own.identify({.size_bytes = tar.size()});
    for (const std::byte b : mr::detail::index_bytes(own)) index += static_cast<char>(b);
    std::vector<mr::detail::set_index_shard> all;
    for (std::size_t i = 0; i < count; ++i) {
      char name[32];
      std::snprintf(name, sizeof name, "shard-%07zu.tar", i);
      all.push_back({.name = name, .size_bytes = tar.size(), .samples = own.samples(),
                     .fingerprint = own.fingerprint(), .index_bytes = index.size(), .version = "1"});
    }
    set = mr::detail::set_index(std::move(all)).text();
    names = "s3://bucket/train/shard-{0000000.." + std::to_string(10'000'000 + count - 1).substr(1) + "}.tar";
  }
  std::string tar{}, index{}, set{}, names{};
  mutable std::atomic<std::size_t> requests{0}, indexes{0};
};
struct many_storage {
  std::shared_ptr<const many_shards> of;
  bool has_set_index = true;

  struct file {
    const std::string& text;
    mr::file_identity identity() const { return {.size_bytes = text.size(), .version = "1"}; }
    std::size_t read_at(std::uint64_t at, std::span<std::byte> to) const {
      const auto part = std::string_view(text).substr(std::min<std::size_t>(text.size(), at), to.size());
      std::memcpy(to.data(), part.data(), part.size());
      return part.size();
    }
  };
  std::unique_ptr<file> open(const std::string& name) const {
    ++of->requests;
    if (name.ends_with(".tar")) return std::make_unique<file>(file{of->tar});
    if (name.ends_with(".tar.millrace-index")) return ++of->indexes, std::make_unique<file>(file{of->index});
    return has_set_index ? std::make_unique<file>(file{of->set}) : nullptr;
  }
};

struct label_row {
  std::int32_t label;
};
label_row label_of(const mr::record& r) { return {r["cls"].as<std::int32_t>()}; }

}  // namespace

TEST_CASE("a set of 100,000 shards: one request, little memory, one line of output, and the same order") {
  const auto files = std::make_shared<const many_shards>(100'000);
  const auto flow = mr::shards(files->names, {.seed = 7, .storage = many_storage{files}});
  load_indexes_of(flow);
  CHECK(files->requests == 1);   // the set index
  CHECK(files->indexes == 0);
  CHECK(sizeof(mr::detail::indexed_shard) <= 72);
  std::vector<std::string> texts;
  mr::session run{flow | mr::shuffle({.window = 8192}) | mr::map(label_of) | mr::batch<label_row>({.size = 256}),
                  {.epochs = 2, .notice = [&](const mr::notice& n) { texts.push_back(n.text); }}};
  for (int i = 0; i < 49; ++i) REQUIRE(run.next());
  CHECK(run.next().resume_text() ==
        "millrace version=6 seed=7 epoch=0 position=12800 lanes=48 window=8192 global_batch=256 epoch_batches=0 "
        "drop_last=1 data=c19e0495bce87322 digest=a7e7208b984ae2a3 shards=100000 samples=400000 crc32c=883065aa");
  CHECK(texts.size() == 1);
  CHECK(run.description().find("; 100000 shards, found in ") != std::string::npos);
  CHECK(run.description().find(" with 1 index request; 167 bytes of memory for each, and more") != std::string::npos);
}

TEST_CASE("without a set index, many shards need one request each, as the start states") {
  const auto files = std::make_shared<const many_shards>(10'000);
  mr::session run{mr::shards(files->names, {.storage = many_storage{files, false}}) | mr::map(label_of) |
                      mr::batch<label_row>({.size = 256}),
                  {.notice = mr::quiet}};
  CHECK(run.description().find("; 10000 shards, found in ") != std::string::npos);
  CHECK(run.description().find(" with 10000 index requests; ") != std::string::npos);
}

TEST_CASE("with a set index next to the shards a start requests it alone") {
  const both_places data;
  data.copy_indexes();
  const auto names = std::string(data.remote) + "{s0-0,s40-0,s41-0,s131-0,s45-empty}.tar";
  const auto without = start(data, data.options(), names);
  CHECK(without.finds == 0);
  CHECK(without.opened.size() == 6);   // of five shards, one index each, and no set index
  for (const bool with_versions : {false, true}) {
    write_set_file(data, with_versions ? data.remote : data.local);
    const auto with = start(data, data.options(), names);
    CHECK(with.finds == 0);
    CHECK(with.opened == std::vector<std::string>{set_file});
    const auto expected = run(data.local, {});
    for (const std::size_t world : {1U, 2U}) {
      const auto got = run(data.remote, {.world = {.rank = 0, .size = world}, .source = data.options()});
      const auto local = run(data.local, {.world = {.rank = 0, .size = world}});
      CHECK(got.batches == local.batches);
      CHECK(got.positions == local.positions);
    }
    const auto storage = std::make_shared<believing_storage>(data.files);
    CHECK(run(data.remote, {.source = {.storage = mr::storage(storage)}}).positions == expected.positions);
    CHECK(storage->assumed.size() == (with_versions ? 5 : 0));
  }
  // Without indexes next to the shards these are read when they are needed.
  std::erase_if(data.files->files, [](const auto& f) { return f.first.ends_with(".tar.millrace-index"); });
  CHECK(start(data, data.options(), names).opened.size() == 1);
  CHECK(run(data.remote, {.source = data.options()}).positions == run(data.local, {}).positions);
}

TEST_CASE("a page in the place of an unnamed set index is ignored, in the place of a named one it is an error") {
  const both_places data;
  const std::string page = "<!doctype html><html><body>app</body></html>";
  data.files->files[set_file].text = page;
  CHECK(run(data.remote, {.source = data.options()}).positions == run(data.local, {}).positions);
  auto named = data.options();
  named.set_index = set_file;
  CHECK_THROWS_WITH_AS(run(data.remote, {.source = named}), doctest::Contains("the set index cannot be used"),
                       mr::data_error);
  data.files->files[set_file].text = "millrace set index 9\n";   // of a later version
  CHECK_THROWS_WITH_AS(run(data.remote, {.source = data.options()}), doctest::Contains("the set index cannot be used"),
                       mr::data_error);
}

TEST_CASE("a named set index serves shards that are stored elsewhere, and local ones") {
  const both_places data;
  write_set_file(data, data.local);
  data.files->files["cellar://lists/mine"] = data.files->files.at(set_file);
  data.files->files.erase(set_file);
  mr::shards_options named = data.options();
  named.set_index = "cellar://lists/mine";
  CHECK(start(data, named, std::string(data.remote) + "s{0,41}-0.tar").opened ==
        std::vector<std::string>{"cellar://lists/mine"});
  named.set_index = "cellar://lists/none";
  CHECK(message_of([&] { load_indexes(data.remote, named); })
            .find("the storage lacks this set index") != std::string::npos);

  mr::shards_options local{};
  local.set_index = data.folder / "set.millrace-index";
  CHECK(run(data.local, {.source = local}).positions == run(data.local, {}).positions);
  std::ofstream(data.folder / "s40-0.tar", std::ios::app) << std::string(512, '\0');
  CHECK(message_of([&] { load_indexes(data.local, local); })
            .find("the shard does not match the set index") != std::string::npos);
}

TEST_CASE("a set index that is out of date is an error that names the shard, and returns no wrong byte") {
  const both_places data;
  data.copy_indexes();
  write_set_file(data, data.remote);
  const auto first = [&] { return message_of([&] { (void)run(data.remote, {.source = data.options()}); }); };
  CHECK(first() == "no error");
  auto& shard = data.files->files.at("cellar://box/s41-0.tar");
  const auto is_wrong = [&] {
    const std::string message = first();
    CAPTURE(message);
    CHECK(message.find("the shard does not match the set index") != std::string::npos);
    CHECK(message.find("cellar://box/s41-0.tar") != std::string::npos);
    CHECK(message.find("inspect --set-index") != std::string::npos);
  };
  shard.version = "2";
  is_wrong();
  shard.version = "1";
  shard.text += std::string(512, '\0');
  is_wrong();
  shard.text.resize(shard.text.size() - 512);
  CHECK(first() == "no error");

  auto& set = data.files->files.at(set_file).text;
  set[set.size() / 2] ^= 1;
  CHECK(first().find("the set index cannot be used: ") != std::string::npos);
  set[set.size() / 2] ^= 1;
  // Another shard under this name, whose size is in the set index: its samples reveal it.
  auto index = mr::detail::set_index::parse(set, set_file);
  auto shards = index.shards();
  for (auto& s : shards)
    if (s.name == "s41-0.tar") ++s.samples;
  set = mr::detail::set_index(shards).text();
  CHECK(first().find("its samples, size or modification time differ") != std::string::npos);
}

TEST_CASE("shards that a set index lacks are requested") {
  const both_places data;
  data.copy_indexes();
  auto partial = mr::detail::build_set_index(
      {"cellar://box/s0-0.tar", "cellar://box/s40-0.tar"}, {.files = {.storage = data.options().storage}});
  CHECK(partial.shards().size() == 2);
  data.files->files[set_file].text = partial.text();
  CHECK(start(data, data.options(), std::string(data.remote) + "{s0-0,s40-0,s41-0}.tar").opened ==
        std::vector<std::string>{set_file, "cellar://box/s41-0.tar.millrace-index"});
  CHECK(run(data.remote, {.source = data.options()}).positions == run(data.local, {}).positions);
}

TEST_CASE("damaged and compressed shards are not in a set index") {
  const both_places data;
  const std::string bytes = text_of(data.folder / "s41-0.tar");
  std::ofstream(data.folder / "s41-0.tar", std::ios::binary) << bytes.substr(0, 3'000);
  const auto result = mr::write_set_index(data.local, data.folder / "some.set");
  CHECK(result.shards == 4);
  CHECK(result.left_out == 1);
  CHECK_THROWS_AS(load_indexes(data.local, {.set_index = data.folder / "some.set"}), mr::data_error);
}

TEST_CASE("indexes that are built from a storage with a cache are kept in it, and the build fills the cache") {
  const both_places data;
  const temporary_folder disk;
  std::uint64_t all = 0;
  for (const auto& [name, file] : data.files->files) all += file.text.size();
  for (const bool again : {false, true}) {
    const mr::cached place(listing_storage{{data.files}}, {.folder = disk.path(), .keep_free_share = 0});
    data.files->shard_bytes = 0;
    load_indexes(data.remote, {.storage = place});
    CHECK(data.files->shard_bytes == (again ? 0 : all));   // once, completely
    CHECK(run(data.remote, {.source = {.storage = place}}).positions == run(data.local, {}).positions);
    CHECK(data.files->shard_bytes == (again ? 0 : all));
  }
}
