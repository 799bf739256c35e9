// An image and its label map through a complete run: files, records, plans, batches; the same for any workers.
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/labels/label_map.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/map.hpp>

#include "../../temporary_folder.hpp"
#include "../image/label_files.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

namespace mr = millrace;

namespace {

struct masked {
  mr::picture pixels;
  mr::label_map<> classes;
  mr::label_map<std::uint16_t> numbers;
};

masked prepare(const mr::record& r, mr::rng& rng) {
  const mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(24, rng).random_flip(rng);
  return {p, mr::labels(r["pgm"]).apply(p.geometry()), mr::labels<std::uint16_t>(r["npy"]).apply(p.geometry())};
}

/// 40 images of two gray halves, whose classes are their levels. Numbers are those of columns.
std::string write_halves(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "halves-%d.tar", .max_samples = 10});
  for (std::size_t i = 0; i < 40; ++i) {
    const std::size_t width = 40 + i % 7, height = 30 + i % 5, border = 10 + i % 20;
    mr::image pixels({height, width, 3});
    slow::labels classes{.width = width, .height = height}, numbers = classes;
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint8_t level = x < border ? 40 : 200;
        for (std::size_t c = 0; c < 3; ++c) pixels(y, x, c) = level;
        classes.samples.push_back(level);
        numbers.samples.push_back(static_cast<std::uint16_t>(1'000 * i + x));
      }
    shards.write("k" + std::to_string(i), {{"jpg", mr::encode_jpeg(pixels, {.quality = 100})},
                                           {"pgm", slow::pgm(classes, 8)},
                                           {"npy", slow::npy(numbers, 16)}});
  }
  shards.close();
  return folder / "halves-{0..3}.tar";
}

}  // namespace

TEST_CASE("images and their label maps stay together, and are the same for any workers") {
  const temporary_folder folder;
  const std::string pattern = write_halves(folder);
  std::vector<std::uint16_t> expected;
  for (const int threads : {0, 1, 4}) {
    std::vector<std::uint16_t> values;
    std::size_t compared = 0, flipped = 0;
    mr::session run{mr::shards(pattern, {.seed = 3, .index = mr::index::off}) | mr::map(prepare) |
                        mr::batch<&masked::pixels, &masked::classes, &masked::numbers>({.size = 8}),
                    quiet(threads, 2)};
    for (auto& b : run) {
      const auto [pixels, classes, numbers] = b.columns();
      CHECK(classes.shape == std::array<std::size_t, 3>{8, 24, 24});
      CHECK(numbers.shape == std::array<std::size_t, 3>{8, 24, 24});
      for (std::size_t i = 0; i < b.size(); ++i) {
        flipped += numbers(i, 0, 0) > numbers(i, 0, 23);
        for (std::size_t y = 0; y < 24; ++y)
          for (std::size_t x = 0; x < 24; ++x) {
            // Next to the boundary pixels are blends of both halves.
            if (x < 2 || x > 21 || classes(i, y, x - 2) != classes(i, y, x + 2)) continue;
            REQUIRE(std::abs(pixels(i, y, x, 1) - classes(i, y, x)) <= 2);
            ++compared;
          }
      }
      const auto all = numbers.span();
      values.insert(values.end(), all.begin(), all.end());
      for (const auto label : classes.span()) values.push_back(label);
    }
    CHECK(values.size() == 80 * 2 * 24 * 24);
    CHECK(compared > 20'000);
    CHECK(flipped > 20);
    CHECK(flipped < 60);
    if (expected.empty()) expected = values;
    CHECK(values == expected);
  }
}

TEST_CASE("a map of another size than its image is an error with the sample's shard, key and position") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "bad-%d.tar"});
  for (std::size_t i = 0; i < 8; ++i)
    shards.write("k" + std::to_string(i),
                 {{"jpg", mr::encode_jpeg(mr::image({20, 30, 3}))},
                  {"pgm", slow::pgm(slow::labels::of_numbers(30, i == 5 ? 21 : 20), 8)},
                  {"npy", slow::npy(slow::labels::of_numbers(30, 20), 16)}});
  shards.close();
  for (const int threads : {0, 3}) {
    mr::session run{mr::shards(folder / "bad-0.tar", {.index = mr::index::off}) | mr::map(prepare) |
                        mr::batch<&masked::classes>({.size = 2}),
                    quiet(threads)};
    std::size_t batches = 0;
    try {
      for (auto& b : run) batches += b.size() > 0;
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == folder / "bad-0.tar");
      CHECK(e.where().key == "k5");
      CHECK(e.where().position == 5);
      CHECK(e.message().find("the field 'pgm' is a label map of the wrong size: got "
                             "30 x 21 pixels, expected 30 x 20 pixels") == 0);
    }
    CHECK(batches == 2);
  }
}
