// Images of different sizes as patches, and rows of documents of text and images, through complete runs.
#include "../../temporary_folder.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/interleaved.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/pack.hpp>
#include <millrace/stages/shuffle.hpp>

#include "../image/slow_geometry.hpp"
#include "../image/slow_pictures.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 5, most = 5;
constexpr int samples = 120;
constexpr mr::patch_list_options patch_options{.patch = side, .max_patches = 100};

struct patched {
  mr::patch_list patches;
  std::int32_t number;
  mr::ragged<std::int32_t, 2> grids;
};

int images_of(int number) { return number * 7 % (static_cast<int>(most) + 1); }

/// Image `i` of a document, as a file: every third one is a PNG.
mr::bytes file_of(int number, int i) {
  static mr::block_pool pool;
  static std::map<std::pair<int, int>, mr::bytes> files;
  mr::bytes& file = files[{number, i}];
  if (file.empty()) {
    const auto height = static_cast<std::size_t>(9 + (number + 5 * i) % 31), width = static_cast<std::size_t>(24 - i);
    const mr::image pixels = slow::photo(height, width, 3, static_cast<std::uint64_t>(10 * number + i));
    file = pool.copy(i % 3 == 2 ? mr::encode_png(pixels) : mr::encode_jpeg(pixels));
  }
  return file;
}

std::vector<mr::picture> pictures_of(int number, bool inverted) {
  std::vector<mr::picture> all;
  for (int i = 0; i < images_of(number); ++i) {
    mr::picture p = mr::resize_to_patches(mr::any_picture(file_of(number, i)), {.patch = side, .max_patches = 20});
    if (i % 2 == 1) p = p.flip();
    if (inverted) p = p.apply(mr::photometric_plan().solarize(0));
    all.push_back(std::move(p));
  }
  return all;
}

/// The patches of an image, cut from its pixels.
void cut_patches(const mr::image& from, std::vector<std::uint8_t>& to) {
  for (std::size_t top = 0; top < from.shape()[0]; top += side)
    for (std::size_t left = 0; left < from.shape()[1]; left += side)
      for (std::size_t y = top; y < top + side; ++y)
        for (std::size_t x = left; x < left + side; ++x)
          for (std::size_t c = 0; c < 3; ++c) to.push_back(from(y, x, c));
}

std::vector<std::uint8_t> patches_of(int number, bool inverted) {
  std::vector<std::uint8_t> all;
  for (const mr::picture& p : pictures_of(number, inverted)) cut_patches(p.pixels(), all);
  return all;
}

template <class View>
std::vector<std::uint8_t> bytes_of(const View& list, std::size_t i) {
  const auto row = list[i].span();
  return {row.begin(), row.end()};
}

}  // namespace

TEST_CASE("images of different sizes are cut into patches, in order, with their grids") {
  for (int n = 0; n < samples; ++n) pictures_of(n, false);   // creates the files before workers read them
  for (const int threads : {0, 3})
    for (const bool inverted : {false, true}) {
      mr::session run{mr::from(numbers(samples), {.seed = 5}) | mr::map([inverted](int n) {
                        const mr::patch_list list(pictures_of(n, inverted), patch_options);
                        return patched{list, n, mr::ragged(list.grids(), {.max_length = most})};
                      }) | mr::batch<patched>({.size = 8}),
                      quiet(threads)};
      int rows = 0;
      for (auto& b : run) {
        const auto [patches, number, grids] = b.columns();
        REQUIRE(patches.values.shape[1] == side);
        REQUIRE(patches.values.shape[2] == side);
        for (std::size_t i = 0; i < b.size(); ++i, ++rows) {
          REQUIRE(bytes_of(patches, i) == patches_of(number[i], inverted));
          const auto plans = pictures_of(number[i], inverted);
          REQUIRE(static_cast<std::size_t>(grids.lengths[i]) == plans.size());
          for (std::size_t k = 0; k < plans.size(); ++k) {
            REQUIRE(static_cast<std::size_t>(grids.values(i, k, 0)) * side == plans[k].height());
            REQUIRE(static_cast<std::size_t>(grids.values(i, k, 1)) * side == plans[k].width());
            REQUIRE(plans[k].height() * plans[k].width() <= 20 * side * side);
          }
        }
      }
      CHECK(rows == samples);
    }
}

TEST_CASE("patches of rotated images, of both decoders and of both qualities, decoded together and from one file") {
  const std::vector<std::byte> plain = mr::encode_jpeg(slow::photo(40, 75, 3, 1));
  for (int orientation = 1; orientation <= 8; ++orientation)
    for (const auto quality : {mr::picture_quality::exact, mr::picture_quality::fast})
      for (const auto decoder : {mr::picture_decoder::automatic, mr::picture_decoder::libjpeg}) {
        const auto file = slow::with_orientation(plain, orientation);
        const mr::picture p = mr::jpeg(slow::view(file), {.quality = quality, .decoder = decoder,
                                                          .apply_orientation = true});
        const std::vector<mr::picture> all{mr::resize_to_patches(p, {.patch = side, .max_patches = 20}),
                                           mr::resize_to_patches(p, {.patch = side, .max_patches = 45}),
                                           p.crop({.left = 5, .top = 5, .width = 30, .height = 25})};
        std::vector<std::uint8_t> expected;
        for (const mr::picture& one : all) cut_patches(one.pixels(), expected);
        const mr::patch_list list(all, patch_options);
        std::vector<std::uint8_t> row(patch_options.max_patches * side * side * 3);
        mr::scratch s;
        list.render(row, s);
        row.resize(list.length() * side * side * 3);
        CHECK(row == expected);
      }
}

TEST_CASE("sizes in patches: the nearest multiples, within bounds, without losing the shape") {
  mr::block_pool pool;
  const auto size_of = [&](std::size_t height, std::size_t width, const mr::resize_to_patches_options& o) {
    const mr::picture p = mr::resize_to_patches(
        mr::any_picture(pool.copy(mr::encode_png(mr::image({2, 2, 3})))).resize(height, width), o);
    CHECK(p.width() % o.patch == 0);
    CHECK(p.height() % o.patch == 0);
    return std::array<std::size_t, 2>{p.height() / o.patch, p.width() / o.patch};
  };
  using grid = std::array<std::size_t, 2>;
  CHECK(size_of(480, 640, {.patch = 28, .max_patches = 16'384}) == grid{17, 23});   // 17.1, 22.9
  CHECK(size_of(14 * 4 + 7, 14 * 5 + 7, {.patch = 14, .max_patches = 100}) == grid{4, 6});   // halves: to even
  CHECK(size_of(3, 30, {.patch = 14, .max_patches = 100}) == grid{1, 2});
  CHECK(size_of(3'000, 4'000, {.patch = 28, .max_patches = 1'280}) == grid{30, 41});   // as smart_resize() does
  CHECK(size_of(100, 50'000, {.patch = 14, .max_patches = 256}) == grid{1, 256});
  CHECK(size_of(50'000, 100, {.patch = 14, .max_patches = 256}) == grid{256, 1});
  CHECK(size_of(28, 56, {.patch = 28, .min_patches = 4, .max_patches = 1'280}) == grid{2, 3});
  CHECK(size_of(200, 200, {.patch = 14, .min_patches = 9, .max_patches = 9}) == grid{3, 3});
  for (std::size_t height = 1; height < 400; height += 23)
    for (std::size_t width = 1; width < 400; width += 29) {
      const auto [rows, columns] = size_of(height, width, {.patch = 7, .max_patches = 64});
      REQUIRE(rows * columns <= 64);
      REQUIRE(rows * columns >= 1);
    }
  CHECK_THROWS_WITH_AS(size_of(9, 9, {.patch = 0}), doctest::Contains("got patch 0"), mr::setup_error);
  CHECK_THROWS_AS(size_of(9, 9, {.patch = 7, .min_patches = 5, .max_patches = 4}), mr::setup_error);
}

TEST_CASE("too many patches, sides between multiples and impossible options are refused by name") {
  mr::block_pool pool;
  const mr::picture p = mr::any_picture(pool.copy(mr::encode_png(slow::photo(10, 15, 3, 1))));   // six patches
  const auto list = [&](std::size_t count, const mr::patch_list_options& o) {
    return mr::patch_list(std::vector<mr::picture>(count, p), o);
  };
  CHECK(list(16, patch_options).length() == 96);
  CHECK_THROWS_WITH_AS(list(17, patch_options),
                       doctest::Contains("got 102 with image 16, expected at most max_patches 100"), mr::data_error);
  const mr::patch_list cut = list(18, {.patch = side, .max_patches = 100, .truncate = true});
  CHECK(cut.length() == 96);
  CHECK(cut.grids().shape() == std::array<std::size_t, 2>{16, 2});
  CHECK_THROWS_WITH_AS(list(1, {.patch = 4, .max_patches = 100}),
                       doctest::Contains("got 15 x 10, expected multiples of 4"), mr::data_error);
  for (const mr::patch_list_options& o :
       std::vector<mr::patch_list_options>{{}, {.patch = 0, .max_patches = 1}, {.patch = 5, .max_patches = 1U << 25}})
    CHECK_THROWS_WITH_AS(list(0, o), doctest::Contains("list of patches is out of range"), mr::setup_error);
  mr::scratch s;
  std::vector<std::uint8_t> pixels(99);
  CHECK_THROWS_WITH_AS(cut.render(pixels, s), doctest::Contains("expected max_patches * patch * patch * 3"),
                       mr::setup_error);
}

namespace {

constexpr mr::interleaved_options token_options{.patch = side, .merge = 2, .image_id = 7};
constexpr std::size_t row_tokens = 96;

/// A document of text, an image, text, and so on; `n` is its number.
mr::interleaved document_of(std::uint32_t n, const std::vector<mr::bytes>& files) {
  mr::interleaved d(token_options);
  for (const mr::bytes& file : files) {
    d.add(std::vector<std::uint32_t>(1 + n % 5, 100 + n));
    d.add(mr::resize_to_patches(mr::any_picture(file), {.patch = 2 * side, .max_patches = 9}));
  }
  return d.add(std::vector<std::uint32_t>(1 + n % 13, 100 + n));
}

/// Writes documents as shards. PNG and integers only: the bytes are the same on every machine.
std::string write_documents(const temporary_folder& folder) {
  mr::shard_writer shards({.pattern = folder / "documents-%d.tar", .max_samples = 30});
  for (int n = 0; n < samples; ++n) {
    const std::string number = std::to_string(n);
    std::vector<std::vector<std::byte>> files;
    for (int i = 0; i < images_of(n); ++i) {
      mr::image pixels({static_cast<std::size_t>(8 + (n + 9 * i) % 40), 30, 3});
      for (std::size_t at = 0; at < pixels.size(); ++at)
        pixels.data()[at] = static_cast<std::uint8_t>((at * at / 7 + at * static_cast<std::size_t>(n + i)) >> 3);
      files.push_back(mr::encode_png(pixels));
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < files.size(); ++i) names.push_back(std::to_string(8 + i) + ".png");
    std::vector<mr::named_bytes> fields{{"n", number}};
    for (std::size_t i = files.size(); i-- > 0;) fields.push_back({names[i], files[i]});
    shards.write("k" + number, fields);
  }
  shards.close();
  return folder / "documents-*.tar";
}

struct row {
  std::vector<std::uint32_t> ids, segments, positions;
  std::vector<std::int32_t> places, grids;
  std::vector<std::uint8_t> patches;

  friend bool operator==(const row&, const row&) = default;
};

struct packed_run {
  std::vector<row> rows;
  std::vector<std::string> positions;
  std::uint64_t digest = 0;
};

packed_run run_packed(const std::string& shards, int threads, const std::string& resume = {}, std::size_t open = 8) {
  auto how = quiet(threads, 2);
  how.resume = resume;
  mr::session run{mr::shards(shards, {.seed = 3}) | mr::shuffle({.window = 60}) | mr::map([](const mr::record& r) {
                    return document_of(r["n"].as<std::uint32_t>(), r.fields("*.png"));
                  }) | mr::pack_best_fit([](const mr::interleaved& d) { return d.size(); },
                                         {.max_cost = row_tokens, .open_rows = open}) |
                      mr::map([](const std::vector<mr::interleaved>& documents) {
                        return mr::join_documents(documents, {.length = row_tokens, .padding = 1});
                      }) | mr::batch<mr::interleaved_row>({.size = 4, .drop_last = false}),
                  how};
  packed_run result;
  for (auto& b : run) {
    const auto [ids, segments, positions, places, grids, patches] = b.columns();
    const auto all = [](const auto& view) { return std::vector(view.begin(), view.end()); };
    const auto pairs = [](const auto& view) {
      const auto span = view.span();
      return std::vector<std::int32_t>(span.begin(), span.end());
    };
    for (std::size_t i = 0; i < b.size(); ++i)
      result.rows.push_back({all(ids[i]), all(segments[i]), all(positions[i]), pairs(places[i]), pairs(grids[i]),
                             bytes_of(patches, i)});
    result.positions.push_back(mr::to_text(b.position()));
  }
  result.digest = run.stats().digest;
  return result;
}

}  // namespace

TEST_CASE("rows of documents: every document once, images at their places, for all workers and resume points") {
  const temporary_folder folder;
  const std::string shards = write_documents(folder);
  const packed_run first = run_packed(shards, 0);
  std::map<std::uint32_t, int> counts;
  std::size_t padding = 0, images = 0;
  for (const row& r : first.rows) {
    std::size_t image = 0, patch_bytes = 0;
    for (std::size_t t = 0; t < row_tokens;) {
      if (r.segments[t] == 0) {
        REQUIRE(r.ids[t] == 1);
        REQUIRE(r.positions[t] == 0);
        ++padding;
        ++t;
        continue;
      }
      // One document: its number is in its first token, because it begins with text.
      const std::uint32_t n = r.ids[t] - 100;
      ++counts[n];
      const std::size_t begin = t;
      std::size_t document_images = 0;
      for (; t < row_tokens && r.segments[t] == r.segments[begin]; ++t) {
        REQUIRE(r.positions[t] == t - begin);
        REQUIRE((r.ids[t] == 7 || r.ids[t] == 100 + n));
        if (image < r.places.size() / 2 && static_cast<std::size_t>(r.places[2 * image]) == t) {
          const auto tokens = static_cast<std::size_t>(r.places[2 * image + 1]);
          REQUIRE(tokens * 4 == static_cast<std::size_t>(r.grids[2 * image] * r.grids[2 * image + 1]));
          for (std::size_t k = t; k < t + tokens; ++k) REQUIRE(r.ids[k] == 7);
          REQUIRE(r.ids[t + tokens] != 7);
          patch_bytes += tokens * 4 * side * side * 3;
          ++image;
          ++document_images;
        }
      }
      REQUIRE(document_images == static_cast<std::size_t>(images_of(static_cast<int>(n))));
    }
    REQUIRE(image == r.places.size() / 2);
    REQUIRE(patch_bytes == r.patches.size());
    images += image;
  }
  REQUIRE(counts.size() == samples);
  for (const auto& [number, times] : counts) REQUIRE(times == 2);   // once in each pass
  CHECK(images > 500);
  CHECK(padding * 10 < first.rows.size() * row_tokens);

  for (const int threads : {1, 3}) {
    const packed_run other = run_packed(shards, threads);
    CHECK(other.rows == first.rows);
    CHECK(other.digest == first.digest);
    CHECK(other.positions == first.positions);
  }
  for (std::size_t from = 0; from + 1 < first.positions.size(); from += 5) {
    const packed_run rest = run_packed(shards, 2, first.positions[from]);
    REQUIRE(rest.rows.size() <= first.rows.size());
    REQUIRE(std::equal(rest.rows.rbegin(), rest.rows.rend(), first.rows.rbegin()));
    REQUIRE(rest.positions == std::vector(first.positions.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                                          first.positions.end()));
  }
  std::uint32_t checksum = 0;
  for (const row& r : first.rows) {
    checksum = mr::crc32c(std::as_bytes(std::span(r.ids)), checksum);
    checksum = mr::crc32c(std::as_bytes(std::span(r.patches)), checksum);
  }
  CHECK(checksum == 3485318002U);   // frozen
}

TEST_CASE("the patches of a row are those of its documents' images, rendered one by one") {
  std::vector<mr::interleaved> documents;
  std::vector<std::uint8_t> expected;
  for (int n = 1; n < 5; ++n) {
    std::vector<mr::bytes> files;
    for (int i = 0; i < images_of(n); ++i) files.push_back(file_of(n, i));
    documents.push_back(document_of(static_cast<std::uint32_t>(n), files));
    for (const mr::picture& p : documents.back().images()) cut_patches(p.pixels(), expected);
    REQUIRE(documents.back().places().size() == files.size());
    REQUIRE(documents.back().held_bytes() > documents.back().size() * 4);
  }
  std::size_t tokens = 0;
  for (const auto& d : documents) tokens += d.size();
  const mr::interleaved_row row = mr::join_documents(documents, {.length = tokens});
  mr::scratch s;
  std::vector<std::uint8_t> pixels(tokens * 4 * side * side * 3);
  row.patches.render(pixels, s);
  pixels.resize(row.patches.length() * side * side * 3);
  CHECK(pixels == expected);

  CHECK_THROWS_WITH_AS(mr::join_documents(documents, {.length = tokens - 1}), doctest::Contains("too long"),
                       mr::data_error);
  CHECK_THROWS_WITH_AS(mr::join_documents({}, {.length = 9}), doctest::Contains("got 0 documents"), mr::setup_error);
  CHECK_THROWS_AS(mr::join_documents(documents, {}), mr::setup_error);
  documents.emplace_back(mr::interleaved_options{.patch = side});
  CHECK_THROWS_WITH_AS(mr::join_documents(documents, {.length = 999}),
                       doctest::Contains("got patch 5, merge 1, image_id 0, expected patch 5, merge 2, image_id 7"),
                       mr::data_error);
  CHECK_THROWS_AS(mr::interleaved({.patch = 0}), mr::setup_error);
  constexpr std::size_t large = std::size_t{1} << 32;   // the product of both is 0
  CHECK_THROWS_WITH_AS(mr::interleaved({.patch = large, .merge = large}), doctest::Contains("from 1 to 65535"),
                       mr::setup_error);
  CHECK_THROWS_WITH_AS(mr::interleaved({.patch = 4}).add(pictures_of(1, false)[0]),
                       doctest::Contains("multiples of patch * merge"), mr::data_error);
}
