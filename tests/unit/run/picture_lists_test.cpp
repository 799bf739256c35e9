// A varying number of images per row, through complete runs: the images of a batch follow each other without padding.
#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"

#include <millrace/adapt/tensors/shared_batch.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/image/any_picture.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/picture/picture_list.hpp>
#include <millrace/image/picture/ragged_picture.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/tensor/ragged.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/bucket.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>
#include <millrace/stages/to_device.hpp>

#include "../image/slow_pictures.hpp"
#include "quiet_sessions.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

namespace mr = millrace;

namespace {

constexpr std::size_t height = 12, width = 16, image_bytes = height * width * 3, most = 5;
constexpr mr::picture_list_options options{.max_pictures = most, .size = {.width = width, .height = height}};
constexpr int samples = 120;

struct document {
  mr::picture_list pictures;
  std::int32_t number;
  mr::picture_list thumbnails;   // the first two images
  mr::ragged<std::uint8_t> text;
};

int images_of(int number) { return number * 7 % (static_cast<int>(most) + 1); }

/// Writes documents of 0 to `most` images, JPEG and PNG, stored in another order than their numbers.
std::string write_documents(const temporary_folder& folder, const std::set<int>& damaged = {}) {
  mr::shard_writer shards({.pattern = folder / "documents-%d.tar", .max_samples = 30});
  for (int n = 0; n < samples; ++n) {
    std::vector<std::vector<std::byte>> files;
    std::vector<mr::named_bytes> fields;
    std::vector<std::string> names;
    const int count = images_of(n);
    for (int i = 0; i < count; ++i) {
      const mr::image pixels = slow::photo(static_cast<std::size_t>(20 + (n + i) % 9),
                                           static_cast<std::size_t>(24 + i), 3, static_cast<std::uint64_t>(10 * n + i));
      files.push_back(i % 3 == 2 ? mr::encode_png(pixels) : mr::encode_jpeg(pixels));
      if (damaged.contains(n) && i == count / 2) files.back().resize(files.back().size() / 2);
      names.push_back(std::to_string(8 + i) + (i % 3 == 2 ? ".png" : ".jpg"));   // "10" follows "9"
    }
    const std::string number = std::to_string(n), text(static_cast<std::size_t>(n % 9), 'a');
    fields.push_back({"n", number});
    for (std::size_t i = files.size(); i-- > 0;) fields.push_back({names[i], files[i]});
    fields.push_back({"txt", text});
    shards.write("k" + number, fields);
  }
  shards.close();
  return folder / "documents-*.tar";
}

std::vector<mr::picture> pictures_of(const mr::record& r, mr::rng& rng) {
  std::vector<mr::picture> all;
  for (const mr::bytes& file : r.fields("*.jpg;*.png"))
    all.push_back(mr::any_picture(file).random_resized_crop({.width = width, .height = height}, rng).random_flip(rng));
  return all;
}

document prepare(const mr::record& r, mr::rng& rng) {
  const std::vector<mr::picture> all = pictures_of(r, rng);
  std::vector<mr::picture> small;
  for (const mr::picture& p : all) small.push_back(p.resize(4, 4));
  const std::string text = mr::text(r["txt"]);
  return {mr::picture_list(all, options), r["n"].as<std::int32_t>(),
          mr::picture_list(std::move(small), {.max_pictures = 2, .size = {.width = 4, .height = 4}, .truncate = true}),
          mr::ragged(std::vector<std::uint8_t>(text.begin(), text.end()), {.max_length = 8})};
}

/// A row: the number of its document, and its images.
struct row {
  std::int32_t number = 0;
  bool valid = true, replaced = false;
  std::vector<std::uint8_t> pixels{}, thumbnails{};
  std::size_t letters = 0;

  friend bool operator==(const row&, const row&) = default;
};
using rows = std::vector<row>;

template <class View>
std::vector<std::uint8_t> bytes_of(const View& list, std::size_t i) {
  const auto images = list[i];
  const auto all = images.span();
  REQUIRE(all.size() == images.shape[0] * images.shape[1] * images.shape[2] * 3);
  return {all.begin(), all.end()};
}

/// Reads a batch, and checks its offsets.
rows rows_of(const auto& b) {
  const auto [pixels, number, thumbnails, text] = b.columns();
  for (const auto& list : {pixels, thumbnails}) {
    REQUIRE(list.offsets.shape[0] == b.size() + 1);
    REQUIRE(list.offsets[0] == 0);
    REQUIRE(static_cast<std::size_t>(list.offsets[b.size()]) == list.values.shape[0]);
  }
  REQUIRE(pixels.values.shape[1] == height);
  REQUIRE(pixels.values.shape[2] == width);
  REQUIRE(thumbnails.values.shape[2] == 4);
  rows all;
  for (std::size_t i = 0; i < b.size(); ++i)
    all.push_back({.number = number[i], .valid = !b.has_flags() || b.valid()[i] == 1,
                   .replaced = b.has_flags() && b.replaced()[i] == 1, .pixels = bytes_of(pixels, i),
                   .thumbnails = bytes_of(thumbnails, i), .letters = static_cast<std::size_t>(text.lengths[i])});
  return all;
}

struct run_options {
  int threads = 2;
  bool copying = false, pad_last = false;
  std::size_t lanes = 0;
  mr::damage_options on_damage{};
};

struct run_result {
  std::vector<rows> batches;
  std::vector<std::string> positions;
  std::uint64_t digest = 0;
};

run_result run_documents(const std::string& shards, const run_options& o) {
  auto how = quiet(o.threads, 2);
  how.on_damage = o.on_damage;
  if (o.lanes > 0) how.lanes = o.lanes;
  mr::session run{mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 60}) | mr::map(prepare) |
                      mr::batch<document>({.size = 12, .drop_last = !o.pad_last, .pad_last = o.pad_last}) |
                      mr::to_device({.device = o.copying ? copying_device() : mr::host_device()}),
                  how};
  run_result result;
  for (auto& b : run) {
    result.batches.push_back(rows_of(b));
    result.positions.push_back(mr::to_text(b.position()));
  }
  result.digest = run.stats().digest;
  return result;
}

/// The images of every document of an epoch, each decoded alone: the slow, obvious way to render a list.
void check_images(const std::string& shards, const std::vector<rows>& batches) {
  std::size_t at = 0;
  std::vector<row> all;
  for (const rows& b : batches) all.insert(all.end(), b.begin(), b.end());
  struct numbered {
    std::int32_t number;
  };
  mr::session run{mr::shards(shards, {.seed = 5}) | mr::shuffle({.window = 60}) |
                      mr::map([&](const mr::record& r, mr::rng& rng) {
                        const row& got = all.at(at++);
                        REQUIRE(got.number == r["n"].as<std::int32_t>());
                        std::vector<std::uint8_t> pixels, thumbnails;
                        std::size_t i = 0;
                        for (const mr::picture& p : pictures_of(r, rng)) {
                          const mr::image full = p.pixels(), small = p.resize(4, 4).pixels();
                          pixels.insert(pixels.end(), full.span().begin(), full.span().end());
                          if (i++ < 2) thumbnails.insert(thumbnails.end(), small.span().begin(), small.span().end());
                        }
                        REQUIRE(got.pixels == pixels);
                        REQUIRE(got.thumbnails == thumbnails);
                        REQUIRE(got.pixels.size() == image_bytes * static_cast<std::size_t>(images_of(got.number)));
                        REQUIRE(got.letters == static_cast<std::size_t>(got.number % 9));
                        return numbered{got.number};
                      }) |
                      mr::batch<numbered>({.size = 12}),
                  quiet(0, 2)};
  for (auto& b : run) static_cast<void>(b);
  CHECK(at == all.size());
}

}  // namespace

TEST_CASE("lists of images equal images that are decoded one by one, for all workers and devices") {
  const temporary_folder folder;
  const std::string shards = write_documents(folder);
  const run_result first = run_documents(shards, {.threads = 0});
  REQUIRE(first.batches.size() == 20);
  check_images(shards, first.batches);
  for (const int threads : {1, 2, 4}) {
    const run_result other = run_documents(shards, {.threads = threads, .copying = threads == 2});
    CHECK(other.batches == first.batches);
    CHECK(other.positions == first.positions);
    CHECK(other.digest == first.digest);
  }
}

TEST_CASE("frozen: the images of a run, and its digest") {
  const temporary_folder folder;
  mr::shard_writer shards({.pattern = folder / "documents-%d.tar", .max_samples = 30});
  for (int n = 0; n < samples; ++n) {
    std::vector<std::vector<std::byte>> files;
    std::vector<std::string> names;
    std::vector<mr::named_bytes> fields;
    const std::string number = std::to_string(n);
    for (int i = 0; i < images_of(n); ++i) {
      mr::image pixels({static_cast<std::size_t>(20 + i), 30, 3});
      for (std::size_t at = 0; at < pixels.size(); ++at)
        pixels.data()[at] = static_cast<std::uint8_t>((at * at / 7 + at * static_cast<std::size_t>(n + i)) >> 3);
      files.push_back(mr::encode_png(pixels));
      names.push_back(std::to_string(9 + i) + ".png");
    }
    fields.push_back({"n", number});
    fields.push_back({"txt", number});
    for (std::size_t i = files.size(); i-- > 0;) fields.push_back({names[i], files[i]});
    shards.write("k" + number, fields);
  }
  shards.close();
  const run_result run = run_documents(folder / "documents-*.tar", {});
  std::uint32_t pixels = 0;
  for (const rows& b : run.batches)
    for (const row& r : b) pixels = mr::crc32c(std::as_bytes(std::span(r.pixels)), pixels);
  CHECK(pixels == 2353988031U);
  CHECK(run.digest == 2897137328442299922U);
}

TEST_CASE("a damaged image masks or replaces its entire list, and padding rows have no image") {
  const std::set<int> bad{1, 2, 3, 40, 77, 119};
  const temporary_folder intact_folder, damaged_folder;
  const run_result intact = run_documents(write_documents(intact_folder), {.pad_last = true, .lanes = 6});
  const std::string shards = write_documents(damaged_folder, bad);
  for (const auto policy : {mr::damage::mask, mr::damage::replace})
    for (const int threads : {0, 3}) {
      const run_result d = run_documents(
          shards, {.threads = threads, .copying = threads == 3, .pad_last = true, .lanes = 6,
                   .on_damage = {.policy = policy, .at_most_share = 1}});
      REQUIRE(d.batches.size() == intact.batches.size());
      std::size_t damaged = 0, replaced = 0;
      for (std::size_t b = 0; b < d.batches.size(); ++b)
        for (std::size_t i = 0; i < d.batches[b].size(); ++i) {
          const row& now = d.batches[b][i];
          row before = intact.batches[b][i];
          if (!bad.contains(before.number)) {
            REQUIRE(now == before);
            continue;
          }
          ++damaged;
          if (policy == mr::damage::mask || !now.replaced) {
            REQUIRE_FALSE(now.valid);
            REQUIRE(now.pixels.empty());
            REQUIRE(now.thumbnails.empty());
          } else {
            REQUIRE(now.pixels.size() == image_bytes * static_cast<std::size_t>(images_of(now.number)));
            ++replaced;
            row copy = now;
            copy.replaced = false;
            REQUIRE(std::find(intact.batches[b].begin(), intact.batches[b].end(), copy) != intact.batches[b].end());
          }
        }
      CHECK(damaged == 2 * bad.size());
      CHECK((policy == mr::damage::replace) == (replaced > 0));
    }
}

TEST_CASE("full rows, empty batches, and a bucket for the number of images") {
  static mr::block_pool pool;
  static const mr::bytes file = pool.copy(mr::encode_png(slow::photo(height, width, 3, 1)));
  struct example {
    mr::picture_list pictures;
  };
  const auto with = [](std::size_t count) {
    return [count](int n) {
      const std::size_t images = count == 9 ? static_cast<std::size_t>(n) % (most + 1) : count;
      return example{mr::picture_list(std::vector<mr::picture>(images, mr::any_picture(file)), options)};
    };
  };
  for (const std::size_t count : {std::size_t{0}, most}) {
    mr::session run{mr::from(numbers(20)) | mr::map(with(count)) | mr::batch<example>({.size = 5}), quiet(2)};
    for (auto& b : run) {
      const auto list = b.template get<0>();
      CHECK(list.values.shape == std::array<std::size_t, 4>{5 * count, height, width, 3});
      CHECK(list[4].shape[0] == count);
      const auto [values, offsets] = mr::detail::tensors_of(b);
      CHECK(values.data == list.values.data);
      CHECK(offsets.data == list.offsets.data);
      CHECK(list.values.size_bytes() == 5 * count * image_bytes);
    }
  }
  mr::session run{mr::from(numbers(120)) | mr::map(with(9)) |
                      mr::bucket<&example::pictures>({.boundaries = {1, most}}) | mr::batch<example>({.size = 10}),
                  quiet(2)};
  std::size_t short_batches = 0, rows = 0;
  for (auto& b : run) {
    const auto list = b.template get<0>();
    short_batches += list.values.shape[0] <= b.size() ? 1 : 0;
    rows += b.size();
  }
  CHECK(rows == 120);
  CHECK(short_batches == 4);
}

TEST_CASE("too many images, another size, other options and impossible ones are refused by name") {
  mr::block_pool pool;
  const mr::picture p = mr::any_picture(pool.copy(mr::encode_png(slow::photo(height, width, 3, 1))));
  const auto list = [&](std::size_t count, const mr::picture_list_options& o) {
    return mr::picture_list(std::vector<mr::picture>(count, p), o);
  };
  CHECK_THROWS_WITH_AS(list(6, options), doctest::Contains("got 6, expected at most max_pictures = 5"), mr::data_error);
  auto truncating = options;
  truncating.truncate = true;
  CHECK(list(6, truncating).length() == 5);
  CHECK(list(5, options).length() == 5);
  CHECK_THROWS_WITH_AS(mr::picture_list({p, p.resize(9, 7)}, options),
                       doctest::Contains("image 1 of a list has the wrong size: got 7 x 9, expected 16 x 12"),
                       mr::data_error);
  for (const mr::picture_list_options& o : std::vector<mr::picture_list_options>{
           {}, {.max_pictures = 5}, {.max_pictures = 0, .size = {.width = width, .height = height}},
           {.max_pictures = 65'536, .size = {.width = width, .height = height}}})
    CHECK_THROWS_WITH_AS(list(1, o), doctest::Contains("expected numbers from 1 to 65535"), mr::setup_error);

  mr::scratch s;
  std::vector<std::uint8_t> pixels(most * image_bytes, 7);
  list(2, options).render(pixels, s);
  const mr::image one = p.pixels();
  CHECK(std::memcmp(&pixels[image_bytes], one.data(), image_bytes) == 0);
  CHECK(pixels[2 * image_bytes] == 7);
  CHECK_THROWS_WITH_AS(list(2, options).render(std::span(pixels).first(image_bytes), s),
                       doctest::Contains("expected max_pictures * height * width * 3"), mr::setup_error);

  struct changing {
    mr::picture_list pictures;
  };
  const auto change = [&](int n) {
    return changing{list(1, n == 9 ? truncating : options)};
  };
  mr::session run{mr::from(numbers(20)) | mr::map(change) | mr::batch<&changing::pictures>({.size = 4}), quiet(0)};
  const auto train = [&] {
    for (auto& b : run) static_cast<void>(b);
  };
  CHECK_THROWS_WITH_AS(train(), doctest::Contains("max_pictures 5, size 16 x 12, truncate here, but max_pictures 5"),
                       mr::data_error);
}
