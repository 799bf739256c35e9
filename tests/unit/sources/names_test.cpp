// Every source accepts a pattern, a path, a list in braces and any range of names.
#include <millrace/sources/files.hpp>
#include <millrace/sources/keys_from.hpp>
#include <millrace/sources/lines.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/token_files.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

/// Checks all kinds of names of two files that exist, alone in a folder. `count` returns the number of listed files.
void check_names(const std::string& folder, const std::array<std::string, 2>& names, const auto& count) {
  CHECK(count(folder) == 2);
  CHECK(count(std::string_view(folder)) == 2);
  CHECK(count(folder.c_str()) == 2);
  CHECK(count(std::filesystem::path(folder)) == 2);
  CHECK(count(std::filesystem::path(names[0])) == 1);
  CHECK(count(names) == 2);
  CHECK(count(std::vector<std::string>{names[1]}) == 1);
  CHECK(count(std::vector<std::filesystem::path>{names[0], names[1]}) == 2);
  CHECK(count(std::vector{names[0].c_str()}) == 1);
}

struct two_files {
  explicit two_files(const std::string& ending, const std::string& content = "x\n")
      : names{folder / ("a" + ending), folder / ("b" + ending)} {
    for (const std::string& name : names) save(name, content);
  }
  temporary_folder folder{};
  std::array<std::string, 2> names;
};

const std::string empty_tar(1024, '\0');

}  // namespace

TEST_CASE("shards() and lines() accept a pattern, a path, or any list of names") {
  const two_files tars(".tar", empty_tar), texts(".txt");
  check_names(tars.folder.path(), tars.names,
              [](const auto& names) { return mr::shards(names, {.index = mr::index::off}).source.shards(); });
  CHECK(mr::shards({tars.names[0], tars.names[1]}, {.index = mr::index::off}).source.shards() == 2);
  CHECK(mr::shards({tars.names[0]}, {.seed = 7, .index = mr::index::off}).source.shards() == 1);
  check_names(texts.folder.path(), texts.names, [](const auto& names) { return mr::lines(names).source.shards(); });
  check_names(texts.folder.path(), texts.names, [](const auto& names) { return mr::list_texts(names).size(); });
  CHECK(mr::lines({texts.names[0], texts.names[1]}, {.seed = 7}).source.shards() == 2);
}

TEST_CASE("shards(), token_files() and files() accept a pattern, a path, or any list of names") {
  const std::string tar = file("1.cls", "7") + empty_tar;
  const two_files tars(".tar", tar), tokens(".u16", "0123"), pictures(".jpg");
  check_names(tokens.folder.path(), tokens.names,
              [](const auto& names) { return mr::token_files(names, {.length = 2}).source.shards(); });
  CHECK(mr::token_files({tokens.names[0], tokens.names[1]}, {.length = 2}).source.shards() == 2);
  check_names(pictures.folder.path(), pictures.names,
              [](const auto& names) { return mr::files(names).source.shards(); });
  CHECK(mr::files({pictures.names[0], pictures.names[1]}).source.shards() == 2);
  const auto count = [](const auto& names) { return mr::shards(names).source.shards(); };
  check_names(tars.folder.path(), tars.names, count);
  CHECK(mr::shards({tars.names[0], tars.names[1]}, {.seed = 7}).source.shards() == 2);
}

TEST_CASE("keys_from() accepts a pattern, a path, or any list of names") {
  const two_files lists(".txt", "key\n");
  for (const auto& keys : {mr::keys_from(lists.folder.path()), mr::keys_from({lists.names[0], lists.names[1]}),
                           mr::keys_from(std::filesystem::path(lists.names[0])), mr::keys_from(lists.names)})
    CHECK(keys.contains("key", "any"));
}
