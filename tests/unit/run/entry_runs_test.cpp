// Entry points in indexes reduce the cost of crops and change nothing else: pixels, order, digests and resume points.
#include "../../temporary_folder.hpp"
#include "quiet_sessions.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/pictures.hpp>
#include <millrace/run/session.hpp>
#include <millrace/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr int samples = 60;

struct example {
  mr::picture pixels;
  std::int32_t label;
};

example prepare(const mr::record& r, mr::rng& random) {
  return {mr::jpeg(r["jpg"]).random_resized_crop(48, random).random_flip(random), r["cls"].as<std::int32_t>()};
}

/// Images with an edge in every block, so that each has its words and its DC values.
std::vector<std::byte> picture_number(int n) {
  mr::image picture({static_cast<std::size_t>(150 + 7 * (n % 9)), static_cast<std::size_t>(260 - 5 * (n % 7)), 3});
  mr::rng random({.seed = 9, .sample = static_cast<std::uint64_t>(n)});
  std::uint8_t value = 0;
  for (std::uint8_t& v : picture.span())
    v = static_cast<std::uint8_t>((value = static_cast<std::uint8_t>(value + random.below(9))) / 2 + random.below(40));
  return mr::encode_jpeg(picture, {.quality = 85});
}

std::string write_shards(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "s-%d.tar", .max_samples = 25});
  for (int i = 0; i < samples; ++i)
    shards.write("k" + std::to_string(i), {{"cls", std::to_string(i)}, {"jpg", picture_number(i)}});
  shards.close();
  return folder / "s-{0..2}.tar";
}

std::vector<std::byte> entries_for(std::string_view field, std::span<const std::byte> payload) {
  return field == "jpg" ? mr::jpeg_entries(payload) : std::vector<std::byte>();
}

struct outcome {
  std::vector<std::uint64_t> pixels;    // a digest of each batch
  std::vector<std::string> positions;   // after each batch
  std::uint64_t with_entries = 0, used = 0, refused = 0;
};

struct run_options {
  int threads = 2;
  bool makes_entries = false;
  std::string resume{};
};

outcome run(const std::string& pattern, const run_options& o) {
  mr::shards_options source{.seed = 7, .notice = mr::quiet};
  if (o.makes_entries) source.entries = entries_for;
  auto options = quiet(o.threads, 2);
  options.resume = o.resume;
  mr::session session{mr::shards(pattern, source) | mr::shuffle({.window = 30}) | mr::map(prepare) |
                          mr::batch<&example::pixels, &example::label>({.size = 10}),
                      options};
  outcome all;
  for (auto& b : session) {
    auto [pixels, labels] = b.columns();
    std::uint64_t digest = 0;
    for (std::size_t row = 0; row < b.size(); ++row)
      digest = mr::detail::digest_bytes(std::as_bytes(pixels[row].span()),
                                        digest + static_cast<std::uint64_t>(labels[row]));
    all.pixels.push_back(digest);
    all.positions.push_back(mr::to_text(b.position()));
  }
  for (const auto& c : session.stats().counts) {
    if (std::string_view(c.what) == "fields read with entry points") all.with_entries = c.times;
    if (std::string_view(c.what) == "JPEG crops accelerated by entry points") all.used = c.times;
    if (std::string_view(c.what) == "fields with wrong or damaged entry points") all.refused = c.times;
  }
  return all;
}

void flip_bit(const std::string& path, std::uint64_t at) {
  const auto time = std::filesystem::last_write_time(path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(old ^ 4));
  }
  std::filesystem::last_write_time(path, time);
}

}  // namespace

TEST_CASE("runs with entry points deliver the same as runs without them, for any number of workers, and resume alike") {
  const temporary_folder folder;
  const std::string pattern = write_shards(folder);
  const outcome plain = run(pattern, {});
  REQUIRE(plain.pixels.size() == 12);
  CHECK(plain.with_entries == 0);
  CHECK(plain.used == 0);
  const mr::entry_points built = mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet});
  CHECK(built.shards == 3);
  CHECK(built.processed == 3);
  CHECK(built.samples == samples);
  CHECK(built.damaged_samples == 0);
  CHECK(built.fields == samples);
  CHECK(built.share() > 0.001);
  CHECK(built.share() < 0.035);
  CHECK(mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet}).processed == 0);
  CHECK(mr::entry_points_of(folder / "s-1.tar").fields == 25);
  for (const int threads : {0, 1, 4}) {
    const outcome with = run(pattern, {.threads = threads});
    CHECK(with.pixels == plain.pixels);
    CHECK(with.positions == plain.positions);
    CHECK(with.used > samples);
    CHECK(with.with_entries >= 2 * samples);
    CHECK(with.refused == 0);
  }
  const outcome rest = run(pattern, {.threads = 1, .resume = plain.positions[4]});
  REQUIRE(rest.pixels.size() == 7);
  CHECK(std::equal(rest.pixels.begin(), rest.pixels.end(), plain.pixels.begin() + 5));
  CHECK(std::equal(rest.positions.begin(), rest.positions.end(), plain.positions.begin() + 5));
}

TEST_CASE("a run builds the entry points itself on request, once") {
  const temporary_folder folder;
  const std::string pattern = write_shards(folder);
  const outcome plain = run(pattern, {});
  const outcome makes = run(pattern, {.makes_entries = true});
  CHECK(makes.pixels == plain.pixels);
  CHECK(makes.positions == plain.positions);
  CHECK(makes.used > samples);
  const auto time = std::filesystem::last_write_time(folder / "s-0.tar.millrace-index");
  const outcome again = run(pattern, {.makes_entries = true});
  CHECK(again.pixels == plain.pixels);
  CHECK(again.used > samples);
  CHECK(std::filesystem::last_write_time(folder / "s-0.tar.millrace-index") == time);
}

TEST_CASE("damaged entry points are refused and counted, and pixels stay; a damaged payload is reported as always") {
  const temporary_folder folder;
  const std::string pattern = write_shards(folder);
  const outcome plain = run(pattern, {});
  const mr::entry_points built = mr::make_entry_points(pattern, entries_for, {.notice = mr::quiet});
  const std::string index = folder / "s-1.tar.millrace-index";
  flip_bit(index, std::filesystem::file_size(index) - 20);   // in the entries of its last image
  const outcome damaged = run(pattern, {});
  CHECK(damaged.pixels == plain.pixels);
  CHECK(damaged.positions == plain.positions);
  CHECK(damaged.refused == 2);   // in each epoch
  CHECK(damaged.with_entries == 2 * built.fields - 2);
  flip_bit(folder / "s-2.tar", std::filesystem::file_size(folder / "s-2.tar") / 2);
  CHECK_THROWS_WITH_AS(run(pattern, {}), doctest::Contains("the sample was changed"), mr::data_error);
}
