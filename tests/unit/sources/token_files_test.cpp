#include <millrace/sources/token_files.hpp>

#include "../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace mr = millrace;

namespace {

using windows = std::vector<std::vector<std::uint32_t>>;

windows read_all(const std::string& path, const mr::token_files_options& options,
                 mr::event_counts* counts = nullptr) {
  mr::detail::token_reader reader(path, options);
  windows all;
  while (auto one = reader.next()) all.push_back(one->ids);
  CHECK(!reader.next());
  if (counts) reader.report(*counts);
  return all;
}

}  // namespace

TEST_CASE("windows of tokens of two bytes and of four") {
  const temporary_folder folder;
  const std::uint16_t narrow[] = {1, 2, 65'535, 4, 5, 6, 7};
  const std::uint32_t wide[] = {1, 2, 70'000};
  tar_test::save(folder / "a.u16", {reinterpret_cast<const char*>(narrow), sizeof narrow});
  tar_test::save(folder / "b.u32", {reinterpret_cast<const char*>(wide), sizeof wide});
  tar_test::save(folder / "c.bin", {reinterpret_cast<const char*>(wide), sizeof wide});
  tar_test::save(folder / "none.u16", "");
  tar_test::save(folder / "odd.u16", "123");

  mr::event_counts counts;
  CHECK(read_all(folder / "a.u16", {.length = 3}, &counts) == windows{{1, 2, 65'535}, {4, 5, 6}});
  REQUIRE(counts.counts().size() == 1);
  CHECK(counts.counts()[0].times == 1);
  CHECK(read_all(folder / "a.u16", {.length = 3, .keep_short = true}) == windows{{1, 2, 65'535}, {4, 5, 6}, {7}});
  const windows overlapping{{1, 2, 65'535}, {65'535, 4, 5}, {5, 6, 7}};
  CHECK(read_all(folder / "a.u16", {.length = 3, .stride = 2}) == overlapping);
  CHECK(read_all(folder / "a.u16", {.length = 3, .stride = 2, .keep_short = true}) == overlapping);
  CHECK(read_all(folder / "a.u16", {.length = 2, .stride = 5}) == windows{{1, 2}, {6, 7}});
  CHECK(read_all(folder / "a.u16", {.length = 8}).empty());
  CHECK(read_all(folder / "b.u32", {.length = 3}) == windows{{1, 2, 70'000}});
  CHECK(read_all(folder / "c.bin", {.length = 3, .token_bytes = 4}) == windows{{1, 2, 70'000}});
  CHECK(read_all(folder / "c.bin", {.length = 6}) == windows{{1, 0, 2, 0, 4'464, 1}});
  CHECK(read_all(folder / "none.u16", {.length = 3}).empty());
  CHECK_THROWS_WITH_AS(read_all(folder / "odd.u16", {}),
                       doctest::Contains("has a partial token: got 3 bytes, expected a multiple of 2 bytes"),
                       mr::data_error);
  CHECK_THROWS_AS(read_all(folder / "not there.u16", {}), mr::io_error);
  CHECK_THROWS_AS(mr::token_files(folder / "a.u16", {.length = 0}), mr::setup_error);
  CHECK_THROWS_AS(mr::token_files(folder / "a.u16", {.token_bytes = 3}), mr::setup_error);
  CHECK(mr::token_files(folder.path()).source.shards() == 5);
  CHECK(mr::token_files(folder / "{a,none}.u16").source.shards() == 2);
}

TEST_CASE("a file that is truncated while it is read is an error, not zeros") {
  const temporary_folder folder;
  const std::string path = folder / "long.u16";
  tar_test::save(path, std::string(600'000, '\1'));
  mr::detail::token_reader reader(path, {.length = 50'000});
  CHECK(reader.next()->ids == std::vector<std::uint32_t>(50'000, 0x0101));
  std::filesystem::resize_file(path, 300'001);
  CHECK(reader.next());   // read with the first
  CHECK_THROWS_WITH_AS(
      for (int i = 0; i < 4; ++i) static_cast<void>(reader.next()), doctest::Contains("the file ends too early"),
      mr::io_error);
  // And with distant windows, so that each is read alone.
  tar_test::save(path, std::string(600'000, '\1'));
  mr::detail::token_reader apart(path, {.length = 10, .stride = 100'000});
  CHECK(apart.next());
  std::filesystem::resize_file(path, 200'010);
  CHECK_THROWS_AS(static_cast<void>(apart.next()), mr::io_error);
}
