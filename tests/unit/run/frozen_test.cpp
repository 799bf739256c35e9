// Files of earlier versions of the library continue bit for bit, or are refused by name as CHANGELOG says.
#include "../../temporary_folder.hpp"
#include "frozen_runs.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <sstream>

namespace mr = millrace;
namespace fs = std::filesystem;

namespace {

const fs::path frozen_folder = MILLRACE_FROZEN;

/// A line of points.txt.
struct point {
  std::string flow;
  std::uint64_t before = 0, batches = 0, rows = 0, digest = 0;
  std::string text;
};

std::vector<point> points_of(const fs::path& folder) {
  std::ifstream file(folder / "points.txt");
  std::vector<point> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    point p;
    words >> p.flow >> p.before >> p.batches >> p.rows >> std::hex >> p.digest;
    words.get();
    std::getline(words, p.text);
    all.push_back(p);
  }
  return all;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The data, including the images.
struct data_folder {
  temporary_folder folder{};
  frozen_data data{folder.path(), with_pictures(folder)};

  static std::string with_pictures(const temporary_folder& folder) {
    const std::string shard = folder / "pictures-0.tar";
    fs::copy_file(frozen_folder / "pictures-0.tar", shard);
    frozen::set_time(shard);
    return shard;
  }
};

/// Continues from each point of a version. Flows with another order are refused by the name of the version. A new run
/// has the current order, so `from_start` is false for versions of other orders.
void check_version(const std::string& version, bool from_start, const std::string& other_order_flow = {}) {
  const data_folder d;
  const auto flows = frozen_flows(d.data);
  const auto points = points_of(frozen_folder / version);
  REQUIRE(points.size() > 50);
  for (const point& p : points) {
    INFO(version, ", ", p.flow, " after batch ", p.before, ": ", p.text);
    const auto flow = std::find_if(flows.begin(), flows.end(), [&](const auto& f) { return f.name == p.flow; });
    REQUIRE(flow != flows.end());
    if (p.text.empty() && !from_start) continue;
    if (p.flow == other_order_flow) {
      if (!p.text.empty())
        CHECK_THROWS_WITH_AS(flow->run(p.text), doctest::Contains("that has several lanes: got version 2"),
                             mr::setup_error);
      continue;
    }
    const frozen_run rest = flow->run(p.text);
    CHECK(rest.batches == p.batches);
    CHECK(rest.rows == p.rows);
    CHECK(rest.digest == p.digest);
    // A run continues in the order in which it began.
    if (!p.text.empty() && !rest.points.empty())
      CHECK(mr::parse_position(rest.points.back()).is_older() == mr::parse_position(p.text).is_older());
  }
}

}  // namespace

TEST_CASE("frozen: runs and resume points of today's version") { check_version("0.1.0", true); }

TEST_CASE("frozen: those of versions in which the quality of a shuffle depended on the number of lanes") {
  check_version("0.1.0-quality-by-lanes", false);
}

TEST_CASE("frozen: those of versions in which lanes did not wait for each other; of several lanes they are refused") {
  check_version("0.1.0-lanes-apart", false, "lanes");
}

TEST_CASE("frozen: a resume point is written unchanged") {
  const data_folder d;
  const auto points = points_of(frozen_folder / "0.1.0");
  for (const frozen_flow& flow : frozen_flows(d.data)) {
    CAPTURE(flow.name);
    const frozen_run reference = flow.run("");
    std::size_t compared = 0;
    for (const point& p : points)
      if (p.flow == flow.name && p.before > 0) {
        mr::position written = mr::parse_position(reference.points[p.before - 1]);
        // Points that were frozen before these fields were added.
        if (p.text.find(" shards=") == std::string::npos) written.counts = {};
        if (p.text.find(" packed_row=") == std::string::npos) written.packing = {};
        CHECK(mr::to_text(written) == p.text);
        ++compared;
      }
    CHECK(compared > 1);
  }
}

TEST_CASE("frozen: indexes are used unchanged, and written unchanged") {
  const data_folder d;
  std::vector<std::string> shards;
  for (const auto& entry : fs::directory_iterator(frozen_folder / "0.1.0")) {
    const fs::path name = entry.path().filename();
    if (name.extension() != ".millrace-index") continue;
    fs::copy_file(entry.path(), d.folder / name.string());
    shards.push_back(d.folder / name.stem().string());
  }
  REQUIRE(shards.size() == 8);
  const auto build = mr::detail::build_indexes(shards);
  CHECK(build.counts.loaded == shards.size());
  CHECK(build.counts.built + build.counts.rebuilt_stale + build.counts.rebuilt_damaged == 0);
  for (const frozen_flow& flow : frozen_flows(d.data)) flow.run("");   // learns the same checksums again
  for (const std::string& shard : shards) {
    const fs::path index = shard + ".millrace-index";
    CHECK(bytes_of(index) == bytes_of(frozen_folder / "0.1.0" / index.filename()));
    fs::remove(index);
  }
  for (const frozen_flow& flow : frozen_flows(d.data)) flow.run("");
  for (const std::string& shard : shards) {
    const fs::path index = shard + ".millrace-index";
    CAPTURE(index.string());
    CHECK(bytes_of(index) == bytes_of(frozen_folder / "0.1.0" / index.filename()));
  }
}
