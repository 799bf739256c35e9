#include "../../../examples/damage_search.hpp"
#include "../../../examples/shapes.hpp"
#include "../../temporary_folder.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/shards.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace mr = millrace;

TEST_CASE("ten consecutive samples contain each class once, in a varying order") {
  std::set<std::string> orders;
  for (std::uint64_t ten = 0; ten < 20; ++ten) {
    std::set<std::int32_t> labels;
    std::string order;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::int32_t label = shape_label({.seed = 3, .index = ten * 10 + i});
      labels.insert(label);
      order += std::to_string(label);
    }
    CHECK(labels.size() == 10);
    CHECK(*labels.begin() == 0);
    CHECK(*labels.rbegin() == 9);
    orders.insert(order);
  }
  CHECK(orders.size() > 15);
}

TEST_CASE("a sample depends only on its seed and index") {
  const auto a = make_shape({.seed = 1, .index = 7}), b = make_shape({.seed = 1, .index = 7});
  CHECK(a.jpeg == b.jpeg);
  CHECK(a.label == b.label);
  CHECK(a.jpeg != make_shape({.seed = 1, .index = 8}).jpeg);
  CHECK(a.jpeg != make_shape({.seed = 2, .index = 7}).jpeg);
}

TEST_CASE("images have many sizes, landscape and portrait, and are JPEGs of that size") {
  std::size_t landscape = 0, portrait = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    mr::rng random({.seed = i});
    const auto pixels = draw_shape(static_cast<std::int32_t>(i % 10), random);
    for (const std::size_t d : {0U, 1U}) {
      CHECK(pixels.shape()[d] >= 80);
      CHECK(pixels.shape()[d] <= 200);
    }
    landscape += pixels.shape()[1] > pixels.shape()[0];
    portrait += pixels.shape()[1] < pixels.shape()[0];
  }
  CHECK(landscape > 15);
  CHECK(portrait > 15);
  const auto s = make_shape({.seed = 1, .index = 1});
  CHECK(s.jpeg.size() > 500);
  CHECK(s.jpeg[0] == std::byte{0xff});
  CHECK(s.jpeg[1] == std::byte{0xd8});
}

TEST_CASE("a mask covers the pixels with the shape's color, and the box is its bounding box") {
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto label = static_cast<std::int32_t>(i % 10);
    mr::rng random({.seed = i}), again({.seed = i});
    const drawn_shape labelled = draw_shape_and_mask(label, random);
    CHECK(std::ranges::equal(labelled.pixels.span(), draw_shape(label, again).span()));   // the same random draws
    const auto [height, width, channels] = labelled.pixels.shape();
    REQUIRE(labelled.mask.shape() == std::array<std::size_t, 3>{height, width, 1});
    std::array<std::size_t, 4> bounds{width, height, 0, 0};
    // The shape has one color plus noise. The ground's color differs by at least 130 before waves and noise.
    double sum[3] = {}, inside = 0, strangers = 0;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const int value = labelled.mask(y, x, 0);
        if (value == 0) continue;
        REQUIRE(value == label + 1);
        bounds = {std::min(bounds[0], x), std::min(bounds[1], y), std::max(bounds[2], x + 1),
                  std::max(bounds[3], y + 1)};
        ++inside;
        for (std::size_t c = 0; c < 3; ++c) sum[c] += labelled.pixels(y, x, c);
      }
    CHECK(bounds == labelled.box);
    REQUIRE(inside > 300);
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        double off = 0;
        for (std::size_t c = 0; c < 3; ++c) off += std::pow(labelled.pixels(y, x, c) - sum[c] / inside, 2);
        strangers += (labelled.mask(y, x, 0) != 0) != (std::sqrt(off) < 65);
      }
    CHECK(strangers < 0.02 * static_cast<double>(width * height));
  }
}

TEST_CASE("all shapes are different and stay within their bounds") {
  constexpr int half = 60;
  for (std::int32_t a = 0; a < 10; ++a)
    for (std::int32_t b = 0; b < 10; ++b) {
      int both = 0, either = 0, outside = 0;
      for (int y = -half; y <= half; ++y)
        for (int x = -half; x <= half; ++x) {
          const double u = 1.25 * x / half, v = 1.25 * y / half;
          const bool in_a = inside_shape(a, u, v), in_b = inside_shape(b, u, v);
          both += in_a && in_b;
          either += in_a || in_b;
          outside += in_a && std::hypot(u, v) > 1.2;
        }
      INFO(shape_names[static_cast<std::size_t>(a)], " and ", shape_names[static_cast<std::size_t>(b)]);
      CHECK(outside == 0);
      if (a == b) CHECK(both > 1'500);
      else CHECK(both < 0.85 * either);
    }
}

namespace {

constexpr std::uint64_t samples_of_shard = 30;

std::string name_of(std::uint64_t sample) { return "n/" + std::to_string(sample); }

/// Shards of shapes. Samples 5, 33 and 34 are damaged.
std::vector<std::string> write_shards(const std::string& folder) {
  mr::shard_writer out({.pattern = folder + "/s-%d.tar", .max_samples = samples_of_shard});
  for (std::uint64_t n = 0; n < 3 * samples_of_shard; ++n) {
    auto jpeg = make_shape({.seed = 1, .index = n}).jpeg;
    if (n == 5) jpeg.resize(jpeg.size() / 2);
    if (n == 33) jpeg.assign(20, std::byte{'x'});
    if (n == 34) jpeg[jpeg.size() / 2] = std::byte{0xff}, jpeg[jpeg.size() / 2 + 1] = std::byte{0xd9};
    const std::string label = "label " + std::to_string(n);
    out.write(name_of(n), {{"jpg", jpeg}, {"txt", label}});
  }
  out.close();
  return {folder + "/s-0.tar", folder + "/s-1.tar", folder + "/s-2.tar"};
}

struct example {
  mr::picture pixels;
  std::uint64_t length;
};

/// Trains one epoch and returns its number of samples.
std::uint64_t train(const std::vector<std::string>& shards, const mr::key_list& without) {
  auto flow = mr::shards(shards, {.notice = mr::quiet, .without = without})
            | mr::map([](const mr::record& r) { return example{mr::jpeg(r["jpg"]).resize(8, 8), r["txt"].size()}; })
            | mr::batch<&example::pixels, &example::length>({.size = 8, .drop_last = false});
  std::uint64_t samples = 0;
  for (auto& b : mr::session{std::move(flow), {.threads = 1, .notice = mr::quiet}}) samples += b.size();
  return samples;
}

/// Changes one byte of the file but not its modification time.
void change(const std::string& path, std::string_view text) {
  struct ::stat before {};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = content.find(text);
  REQUIRE(at != std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put('L').flush();
  const timespec times[]{before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("training skips the samples that a search lists, and reads no damage") {
  const temporary_folder f;
  const auto shards = write_shards(f.path());
  const std::string list = f / "q.jsonl";
  CHECK_THROWS_AS(train(shards, {}), mr::data_error);

  const damage_totals totals = damage_search(shards, list).run(2);
  CHECK(totals.shards == 3);
  CHECK(totals.samples == 90);
  CHECK(totals.damaged == 3);
  CHECK(totals.cut == 0);
  CHECK(totals.added == 3);
  const mr::key_list damaged = mr::keys_from(list);
  CHECK(damaged.size() == 3);
  CHECK(damaged.contains(name_of(5), "s-0.tar"));
  CHECK(damaged.contains(name_of(33), "s-1.tar"));
  CHECK(damaged.contains(name_of(34), "s-1.tar"));
  CHECK(train(shards, damaged) == 87);

  // The training recorded the checksums of all other samples. Now a label is edited in place.
  change(shards[2], "label 77");
  change(shards[2], "label 88");
  CHECK_THROWS_AS(train(shards, damaged), mr::data_error);
  const damage_totals later = damage_search(shards, list).run(3);
  CHECK(later.damaged == 5);
  CHECK(later.added == 2);
  const mr::key_list all = mr::keys_from(list);
  CHECK(all.contains(name_of(77), "s-2.tar"));
  CHECK(all.contains(name_of(88), "s-2.tar"));
  CHECK(train(shards, all) == 85);
}

TEST_CASE("a truncated shard gets an entry, and the samples before the cut are searched") {
  const temporary_folder f;
  const auto shards = write_shards(f.path());
  std::filesystem::resize_file(shards[1], std::filesystem::file_size(shards[1]) - 4096);
  std::filesystem::remove(shards[2]);
  const std::string list = f / "q.jsonl";
  const damage_totals totals = damage_search(shards, list).run(8);
  CHECK(totals.damaged == 3);
  CHECK(totals.cut == 2);
  CHECK(totals.added == 5);
  CHECK(mr::keys_from(list).size() == 3);
  CHECK(damage_search(shards, list).run(1).added == 0);
  CHECK(train({shards[0]}, mr::keys_from(list)) == 29);
}

TEST_CASE("a shard with only damaged samples is searched, with and without an index") {
  const temporary_folder f;
  {
    mr::shard_writer out({.pattern = f / "s-%d.tar", .max_samples = 10});
    for (int n = 0; n < 2; ++n) out.write(name_of(n), {{"jpg", "bad"}});
    out.close();
  }
  const std::vector<std::string> shards{f / "s-0.tar"};
  CHECK_THROWS_AS(train(shards, {}), mr::data_error);
  REQUIRE(std::filesystem::exists(shards[0] + ".millrace-index"));
  CHECK(damage_search(shards, f / "q.jsonl").run(1).added == 2);
}

TEST_CASE("an unwritable list ends the search with its error, and lists no shard as cut") {
  const temporary_folder f;
  const auto shards = write_shards(f.path());
  std::filesystem::create_symlink("/dev/full", f / "full.jsonl");
  CHECK_THROWS_WITH_AS(damage_search(shards, f / "full.jsonl").run(2), doctest::Contains("full.jsonl"), mr::io_error);
}
