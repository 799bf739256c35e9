// Counts of samples in the files of other tools.
#include <millrace/sources/list/sidecar_counts.hpp>

#include "../../io/tar_bytes.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mr = millrace;
using namespace tar_test;

namespace {

using counts = std::vector<std::optional<std::uint64_t>>;

}  // namespace

TEST_CASE("counts of DALI, OpenCLIP and wids are found by the names of shards") {
  const temporary_folder f;
  std::filesystem::create_directory(f / "b");
  const std::vector<std::string> shards{f / "s-0.tar", f / "s-1.tar.gz", f / "s-2.tar", f / "b/s-0.tar"};
  CHECK(mr::sidecar_counts(shards) == counts(4));
  save(f / "s-0.idx", "v1.2 37\njpg 512 100 a.jpg cls 1536 1 a.cls\n");
  CHECK(mr::sidecar_counts(shards) == counts{37, {}, {}, {}});
  save(f / "sizes.json", "{\"s-0.tar\": 37, \"s-1.tar.gz\": 10, \"other.tar\": 5}");
  CHECK(mr::sidecar_counts(shards) == counts{37, 10, {}, {}});
  save(f / "b/sizes.json", " { } ");
  save(f / "wids.json",
       "{\"__kind__\": \"wids-shard-index-v1\", \"wids_version\": 1,\n"
       "\"nothing\": [null, true, -1.5e3, NaN, -Infinity, []],\n"
       " \"shardlist\": [{\"url\": \"https://x/s-2.tar\", \"nsamples\": 12, \"md5sum\": \"\\u00e4\\n\\\"\"},\n"
       "                 {\"url\": \"s-1.tar.gz\", \"nsamples\": 10}, {\"url\": \"s-0.tar\"}]}");
  CHECK(mr::sidecar_counts(shards, {.wids_file = f / "wids.json"}) == counts{37, 10, 12, {}});
}

TEST_CASE("contradicting counts are unknown") {
  const temporary_folder f;
  const std::vector<std::string> shards{f / "s-0.tar", f / "s-1.tar"};
  save(f / "s-0.idx", "v1.1 37\r\n");
  save(f / "sizes.json", "{\"s-0.tar\":38,\"s-1.tar\":5}");
  CHECK(mr::sidecar_counts(shards) == counts{{}, 5});
  save(f / "sizes.json", "{\"s-1.tar\":4,\"a/s-1.tar\":5}");
  CHECK(mr::sidecar_counts(shards) == counts{37, {}});
}

TEST_CASE("files whose content contradicts their names are errors, with a place") {
  const temporary_folder f;
  const std::vector<std::string> shards{f / "s.tar"};
  for (const std::string bad : {"", "v1.2", "v1.2 ", "v1.2 x", "37", "v1.2 3x"}) {
    CAPTURE(bad);
    save(f / "s.idx", bad);
    CHECK_THROWS_AS((void)mr::sidecar_counts(shards), mr::data_error);
  }
  std::filesystem::remove(f / "s.idx");
  const std::string good = R"({"s.tar": 1, "x": ["A\u0041", {"y": [1.5, true]}]})";
  save(f / "sizes.json", good);
  CHECK(mr::sidecar_counts(shards) == counts{1});
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    save(f / "sizes.json", good.substr(0, cut));
    CHECK_THROWS_AS((void)mr::sidecar_counts(shards), mr::data_error);
  }
  for (const std::string& bad : {good + "x", std::string("{\"a\":}"), std::string("{\"a\" 1}"), std::string("[1 2]"),
                                 std::string("{\"a\": 1,}"), std::string("\"\\x\""), std::string("\"\\u12\""),
                                 std::string("\"\\u12x4\""), std::string("nul"), std::string(100'000, '[')}) {
    CAPTURE(bad.substr(0, 60));
    save(f / "sizes.json", bad);
    try {
      (void)mr::sidecar_counts(shards);
      FAIL_CHECK("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == f / "sizes.json");
      CHECK(e.where().offset_bytes <= bad.size());
    }
  }
  std::filesystem::remove(f / "sizes.json");
  CHECK_THROWS_AS((void)mr::sidecar_counts(shards, {.wids_file = f / "none"}), mr::io_error);
}
