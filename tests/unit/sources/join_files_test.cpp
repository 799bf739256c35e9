// The files of a join: all sets together keep a limited number of files open.
#include "../../temporary_folder.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/join.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

TEST_CASE("the sets of a join together keep at most 512 files open") {
  const temporary_folder folder;
  constexpr std::size_t set_count = 5, shard_count = 120;   // 600 files; a set alone keeps 128
  std::vector<std::shared_ptr<mr::detail::shard_data>> sets;
  for (std::size_t set = 0; set < set_count; ++set) {
    std::vector<std::string> names;
    for (std::size_t shard = 0; shard < shard_count; ++shard) {
      const std::string name = std::to_string(set) + "-" + std::to_string(shard);
      mr::shard_writer writer({.pattern = folder / (name + "-%d.tar")});
      writer.write("k" + std::to_string(shard), {{"f" + std::to_string(set), name}});
      writer.close();
      names.push_back(folder / (name + "-0.tar"));
    }
    sets.push_back(std::make_shared<mr::detail::shard_data>(names));
  }
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd"), end;
    return std::distance(files, end);
  };
  mr::detail::notice_outlet notices(mr::quiet);
  mr::detail::joined_data joined(sets, {}, notices);
  const auto before = open_files();
  for (std::size_t shard = 0; shard < shard_count; ++shard) {
    const mr::detail::located_sample one{shard, 0};
    std::vector<mr::record> records(1);
    std::exception_ptr failure;
    REQUIRE(joined.read({&one, 1}, records, failure) == 1);
    REQUIRE(mr::text(records[0]["f4"]) == "4-" + std::to_string(shard));
    CHECK(open_files() <= before + 512);
  }
  CHECK(open_files() == before + 512);   // more than a set alone keeps
}
