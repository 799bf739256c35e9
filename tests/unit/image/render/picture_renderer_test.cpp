#include <millrace/device/normalize.hpp>
#include <millrace/image/augment/photometric_plan.hpp>
#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/image/values/jpeg_refusal.hpp>
#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

#include "../planned_pictures.hpp"
#include "../random_jpegs.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;
using mr::detail::entry_origin;
using mr::jpeg_refusal;
using counted = std::vector<std::pair<std::string, std::uint64_t>>;

namespace {

counted counts_of(const mr::event_counts& counts) {
  counted all;
  for (const auto& c : counts.counts()) all.push_back({c.what, c.times});
  return all;
}

}  // namespace

TEST_CASE("each rendered image is counted by its decoder, its size and the savings of entry points") {
  const std::string file(100, 'x');
  const mr::bytes data = mr::bytes::borrowed(file);
  const mr::jpeg_header baseline{.width = 20, .height = 10}, progressive{.width = 4, .height = 3, .progressive = true};
  const std::array jobs{mr::detail::picture_job{.data = &data, .header = &baseline, .eighths = 4},
                        mr::detail::picture_job{.data = &data, .header = &progressive},
                        mr::detail::picture_job{.data = &data, .header = &progressive},
                        mr::detail::picture_job{.data = &data, .header = &baseline}};
  const std::array results{mr::detail::built_in_result{.entries = entry_origin::packed},
                           mr::detail::built_in_result{.entries = entry_origin::restart_markers,
                                                       .entries_refused = true},
                           mr::detail::built_in_result{.refusal = jpeg_refusal::sampling},
                           mr::detail::built_in_result{.refusal = jpeg_refusal::damaged}};
  mr::event_counts counts;
  mr::scratch s;
  s.count_into(counts);

  SUBCASE("several images of the built-in decoder") {
    mr::detail::render_counts sums{.shared = 1, .libjpeg = {.progressive = 1, .damaged = 1, .warnings = 7}};
    for (std::size_t i = 0; i < jobs.size(); ++i) sums.add(jobs[i], results[i]);
    CHECK(sums.built_in == 2);
    CHECK(sums.built_in_progressive == 1);
    sums.count_into(s, results);
    CHECK(counts_of(counts) ==
          counted{{text_of(mr::detail::event_name::own_together), 2},
                  {"JPEGs by libjpeg: sampling", 1},
                  {"JPEGs by libjpeg: damaged", 1},
                  {"bytes of JPEGs", 400},
                  {"pixels of JPEGs", 424},
                  {"JPEGs decoded smaller", 1},
                  {"JPEG crops accelerated by entry points", 1},
                  {"JPEG crops accelerated by restart markers", 1},
                  {"JPEGs with entry points of another file", 1},
                  {"images rendered from the planes of another image", 1},
                  {"progressive JPEGs", 2},
                  {"damaged JPEGs accepted", 1},
                  {"warnings of libjpeg", 7}});
  }
  SUBCASE("a single image") {
    mr::detail::render_counts sums;
    sums.add(jobs[3], {});
    sums.count_into(s, {});
    CHECK(counts_of(counts) ==
          counted{{text_of(mr::detail::event_name::own_alone), 1}, {"bytes of JPEGs", 100}, {"pixels of JPEGs", 200}});
  }
}

TEST_CASE("each reason has its name, and its event has the same one") {
  for (const auto& [why, name] :
       {std::pair{jpeg_refusal::none, "none"}, std::pair{jpeg_refusal::not_asked, "as requested"},
        std::pair{jpeg_refusal::scaled, "size"}, std::pair{jpeg_refusal::machine, "processor"},
        std::pair{jpeg_refusal::not_a_jpeg, "not a JPEG"}, std::pair{jpeg_refusal::process, "arithmetic or lossless"},
        std::pair{jpeg_refusal::precision, "precision"}, std::pair{jpeg_refusal::components, "components"},
        std::pair{jpeg_refusal::sampling, "sampling"}, std::pair{jpeg_refusal::several_scans, "several scans"},
        std::pair{jpeg_refusal::colors, "color space"}, std::pair{jpeg_refusal::unusual_header, "unusual header"},
        std::pair{jpeg_refusal::tables, "tables"}, std::pair{jpeg_refusal::damaged, "damaged"},
        std::pair{jpeg_refusal::wild_values, "extreme values"}, std::pair{jpeg_refusal::progressive, "progressive"},
        std::pair{jpeg_refusal::unrefined, "progressive, scans omitted"},
        std::pair{jpeg_refusal::limits, "progressive, beyond a limit"}}) {
    CHECK(std::string(refusal_name(why)) == name);
    CHECK(std::string(text_of(mr::detail::event_of(why))) == "JPEGs by libjpeg: " + std::string(name));
    CHECK(libjpeg_reason(mr::detail::event_of(why)) == std::string(name));
  }
}

namespace {

constexpr const char* shared_count = "images rendered from the planes of another image";

/// Empty if the image can be rendered alone.
std::string error_alone(const mr::picture& p, mr::image& pixels) {
  mr::scratch own;
  try {
    pixels = p.pixels(own);
  } catch (const mr::data_error& e) {
    return e.what();
  }
  return {};
}

std::vector<std::byte> any_kind_of_file(mr::rng& d) {
  auto f = slow::draw_file(d, d.chance(0.1) ? 300 : 90);
  if (d.chance(0.1)) {
    f.recipe.progressive = true;
    f.bytes = slow::make_file(slow::photo(f.height, f.width, f.channels, d.bits()), f.recipe);
  }
  return d.chance(0.4) ? slow::damaged(f.bytes, d) : f.bytes;
}

mr::detail::jpeg_planes_request request_of(const std::vector<std::byte>& file, const mr::crop_box& box) {
  return {.bytes = file, .left = box.left, .top = box.top, .right = box.left + box.width,
          .bottom = box.top + box.height};
}

}  // namespace

TEST_CASE("several images of the same JPEG are the same as alone, damaged files and all other kinds too") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 41});
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  std::size_t groups_with_errors = 0, of_damaged = 0;
  const std::size_t rounds = slow::count_of("MILLRACE_TEST_PICTURES", 1'500) / 3;
  for (std::size_t i = 0; i < rounds; ++i) {
    std::vector<std::vector<std::byte>> files;
    for (std::uint64_t k = d.below(3) + 1; k > 0; --k) files.push_back(any_kind_of_file(d));
    std::vector<mr::picture> good;
    std::vector<mr::image> expected;
    bool fails = false;
    std::vector<mr::picture> all;
    for (std::uint64_t k = d.below(mr::picture::together - 1) + 2; k > 0; --k) {
      const mr::jpeg_options options{
          .quality = d.chance(0.6) ? mr::picture_quality::exact : mr::picture_quality::fast,
          .decoder = d.chance(0.1)   ? mr::picture_decoder::libjpeg
                     : d.chance(0.5) ? mr::picture_decoder::built_in
                                     : mr::picture_decoder::automatic,
          .limits = {.max_pixels = 100'000}};
      try {
        const mr::picture full = mr::jpeg(slow::view(files[d.below(files.size())]), options);
        auto p = slow::planned(full, mr::rng({.seed = d.bits()}));
        if (d.chance(0.3)) p = p.filter(mr::resize_filter::bicubic);
        all.push_back(p);
        mr::image pixels;
        if (!error_alone(p, pixels).empty()) {
          fails = true;
          continue;
        }
        good.push_back(p);
        expected.push_back(std::move(pixels));
      } catch (const mr::data_error&) {
      }
    }
    CAPTURE(i);
    if (fails) {
      ++groups_with_errors;
      CHECK_THROWS_AS(static_cast<void>(slow::rendered_together(all, s)), mr::data_error);
    }
    of_damaged += fails && good.size() > 1;
    const auto images = slow::rendered_together(good, s);
    for (std::size_t k = 0; k < good.size(); ++k) REQUIRE(slow::same(images[k], expected[k]));
  }
  CHECK(slow::all_counts(counts)[shared_count] > rounds);
  CHECK(groups_with_errors > rounds / 20);
  CHECK(of_damaged > rounds / 50);
}

TEST_CASE("ten crops of one JPEG are decoded once, and counted as ten images") {
  const auto file = slow::make_file(slow::photo(375, 500, 3, 1), {}), copy = file;
  mr::rng d({.seed = 4});
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  std::vector<mr::picture> crops;
  for (int k = 0; k < 2; ++k)
    crops.push_back(mr::jpeg(slow::view(file)).random_resized_crop(48, d, {.scale_min = 0.32}));
  for (int k = 0; k < 6; ++k)
    crops.push_back(mr::jpeg(slow::view(file)).random_resized_crop(24, d, {.scale_min = 0.05, .scale_max = 0.32}));
  static_cast<void>(slow::rendered_together(crops, s));
  CHECK(slow::all_counts(counts)[shared_count] == 7);
  CHECK(slow::all_counts(counts)[text_of(mr::detail::event_name::own_together)] == 8);
  // The same bytes at another address are another file.
  static_cast<void>(slow::rendered_together({mr::jpeg(slow::view(file)), mr::jpeg(slow::view(copy))}, s));
  CHECK(slow::all_counts(counts)[shared_count] == 7);
  // Images that are decoded smaller share with others of that size.
  const auto fast = mr::jpeg(slow::view(file), {.quality = mr::picture_quality::fast});
  static_cast<void>(slow::rendered_together({fast.resize(40, 40), fast, fast.resize(30, 40), fast.flip()}, s));
  CHECK(slow::all_counts(counts)[shared_count] == 9);
}

TEST_CASE("requests of one file are joined if that is less work, and the longest is first") {
  const std::vector<std::byte> one(1'000), two(4'000);
  const mr::detail::plane_size size{.width = 500, .height = 375};
  mr::detail::shared_decode_requests all;
  const auto jobs_of = [&](std::size_t n) {
    std::vector<std::size_t> jobs;
    all.for_each_job(n, [&](std::size_t job) { jobs.push_back(job); });
    return jobs;
  };
  all.begin(5);
  all.add(0, request_of(one, {.left = 10, .top = 20, .width = 300, .height = 200}), size);
  all.add(1, request_of(two, {.left = 0, .top = 0, .width = 30, .height = 30}), size);
  all.add(3, request_of(one, {.left = 250, .top = 5, .width = 200, .height = 190}), size);
  all.add(4, request_of(two, {.left = 470, .top = 345, .width = 30, .height = 30}), size);
  all.close();
  // The small corners of the second file stay separate: all between them would have to be decoded.
  REQUIRE(all.list().size() == 3);
  CHECK(jobs_of(0) == std::vector<std::size_t>{4});
  CHECK(jobs_of(1) == std::vector<std::size_t>{0, 3});
  CHECK(jobs_of(2) == std::vector<std::size_t>{1});
  CHECK(all.is_joined(1));
  CHECK_FALSE(all.is_joined(0));
  CHECK(all.list()[1].left == 10);
  CHECK(all.list()[1].top == 5);
  CHECK(all.list()[1].right == 450);
  CHECK(all.list()[1].bottom == 220);
  CHECK(all.list()[2].bottom == 30);
  all.begin(1);
  all.close();
  CHECK(all.list().empty());
}

namespace {

constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};

/// Adds the position and a number to each byte: earlier operations change the result.
struct position_added final : mr::row_operation {
  explicit position_added(unsigned by) : number(by) {}
  void run(const mr::rgb_row& row, mr::scratch&) const override {
    REQUIRE(row.pixels.size() == 3 * row.height * row.width);
    for (std::size_t i = 0; i < row.pixels.size(); ++i)
      row.pixels[i] = static_cast<std::uint8_t>(row.pixels[i] * number + i / row.width);
  }
  const unsigned number;
};

struct planned {
  mr::picture plain, operated;
  std::vector<std::shared_ptr<const position_added>> operations{};
};

planned draw(mr::rng& d, const std::vector<std::byte>& file) {
  const mr::jpeg_options options{
      .quality = d.chance(0.5) ? mr::picture_quality::fast : mr::picture_quality::exact,
      .decoder = d.chance(0.3) ? mr::picture_decoder::libjpeg : mr::picture_decoder::automatic};
  const mr::picture plain = slow::planned(mr::jpeg(slow::view(file), options), mr::rng({.seed = d.bits()}));
  planned p{.plain = plain, .operated = plain};
  for (std::uint64_t count = d.below(4); count > 0; --count) {
    p.operations.push_back(std::make_shared<position_added>(static_cast<unsigned>(d.below(5))));
    p.operated = d.chance(0.5) ? p.operated.apply(p.operations.back())
                               : std::move(p.operated).apply(p.operations.back());
  }
  return p;
}

mr::image expected_of(const planned& p, mr::scratch& s) {
  mr::image pixels = p.plain.pixels(s);
  const auto shape = pixels.shape();
  for (const auto& operation : p.operations)
    operation->run({.pixels = pixels.span(), .height = shape[0], .width = shape[1]}, s);
  return pixels;
}

template <class T>
std::vector<T> numbers_of(const mr::image& pixels) {
  const auto [height, width, channels] = pixels.shape();
  std::vector<T> numbers(channels * height * width);
  mr::normalize<T>({.data = pixels.data(), .shape = {1, height, width, channels}},
                   {.data = numbers.data(), .shape = {1, channels, height, width}},
                   {.mean = {imagenet.mean[0], imagenet.mean[1], imagenet.mean[2]},
                    .std = {imagenet.std[0], imagenet.std[1], imagenet.std[2]}, .layout = mr::image_layout::nchw});
  return numbers;
}

template <class T>
void check_numbers(const planned& p, const mr::image& expected, mr::scratch& s) {
  const mr::normalized_picture<T> normalized(p.operated, imagenet);
  std::vector<T> row(expected.size());
  normalized.render(row, s);
  const std::vector<T> numbers = numbers_of<T>(expected);
  REQUIRE(std::memcmp(row.data(), numbers.data(), row.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("operations run on the finished pixels in their order, alone, with others, and before conversion to "
          "numbers") {
  mr::rng d({.seed = 4});
  mr::scratch s;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<std::byte>> files;
    for (std::size_t i = 0; i < mr::picture::together; ++i) files.push_back(slow::draw_file(d, 90).bytes);
    std::vector<planned> all;
    for (const auto& file : files) all.push_back(draw(d, file));
    std::vector<std::vector<std::uint8_t>> rows;
    std::vector<const mr::picture*> items;
    for (const planned& p : all) {
      rows.emplace_back(3 * p.operated.height() * p.operated.width());
      items.push_back(&p.operated);
    }
    const std::vector<std::span<std::uint8_t>> places(rows.begin(), rows.end());
    mr::picture::render_together(items, places, s);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const mr::image expected = expected_of(all[i], s), alone = all[i].operated.pixels(s);
      REQUIRE(std::memcmp(rows[i].data(), expected.data(), expected.size()) == 0);
      REQUIRE(std::memcmp(alone.data(), expected.data(), expected.size()) == 0);
      check_numbers<float>(all[i], expected, s);
      check_numbers<mr::f16>(all[i], expected, s);
      check_numbers<mr::bf16>(all[i], expected, s);
    }
  }
}

TEST_CASE("a picture with a plan is rendered to the pixels that the plan computes from the picture's") {
  mr::rng d({.seed = 3});
  mr::scratch s;
  mr::image pixels({60, 80, 3});
  for (std::uint8_t& value : pixels.span()) value = static_cast<std::uint8_t>(d.below(256));
  const std::vector<std::byte> file = mr::encode_jpeg(pixels);
  for (int round = 0; round < 30; ++round) {
    const mr::picture plain = mr::jpeg(mr::bytes::borrowed(std::span<const std::byte>(file)))
                                  .random_resized_crop({.width = 40, .height = 32}, d).random_flip(d);
    mr::photometric_plan first, second;
    first.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, d);
    if (round % 2 == 0) second.rand_augment({.width = 40, .height = 32}, d);
    mr::image expected = plain.pixels(s);
    first.run(expected.span(), 40, 32, s);
    second.run(expected.span(), 40, 32, s);
    const mr::image got = plain.apply(first).apply(second).pixels(s);
    REQUIRE(std::equal(got.span().begin(), got.span().end(), expected.span().begin()));
  }
}
