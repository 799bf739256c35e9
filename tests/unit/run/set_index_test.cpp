// Runs with a set index: the batches of runs without one, with fewer requests; and errors if it is out of date.
#include "cellar.hpp"
#include "loaded_shards.hpp"

#include <millrace/io/cache/cached.hpp>
#include <millrace/io/index/set/shard_heads.hpp>
#include <millrace/shards.hpp>

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

}  // namespace

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
            .find("the storage has no such set index") != std::string::npos);

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
