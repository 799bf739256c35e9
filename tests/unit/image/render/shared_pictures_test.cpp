#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/pictures.hpp>

#include "../random_jpegs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace mr = millrace;

namespace {

constexpr const char* shared_count = "images rendered from the planes of another image";

std::map<std::string, std::uint64_t> all_counts(const mr::event_counts& t) {
  std::map<std::string, std::uint64_t> all;
  for (const auto& c : t.counts()) all[c.what] = c.times;
  return all;
}

std::vector<mr::image> rendered(const std::vector<mr::picture>& all, mr::scratch& s) {
  std::vector<const mr::picture*> items;
  std::vector<mr::image> images;
  std::vector<std::span<std::uint8_t>> rows;
  for (const auto& p : all) {
    items.push_back(&p);
    images.emplace_back(p.shape());
  }
  for (auto& m : images) rows.push_back(m.span());
  mr::picture::render_together(items, rows, s);
  return images;
}

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
      CHECK_THROWS_AS(static_cast<void>(rendered(all, s)), mr::data_error);
    }
    of_damaged += fails && good.size() > 1;
    const auto images = rendered(good, s);
    for (std::size_t k = 0; k < good.size(); ++k) REQUIRE(slow::same(images[k], expected[k]));
  }
  CHECK(all_counts(counts)[shared_count] > rounds);
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
  static_cast<void>(rendered(crops, s));
  CHECK(all_counts(counts)[shared_count] == 7);
  CHECK(all_counts(counts)[text_of(mr::detail::event_name::own_together)] == 8);
  // The same bytes at another address are another file.
  static_cast<void>(rendered({mr::jpeg(slow::view(file)), mr::jpeg(slow::view(copy))}, s));
  CHECK(all_counts(counts)[shared_count] == 7);
  // Images that are decoded smaller share with others of that size.
  const auto fast = mr::jpeg(slow::view(file), {.quality = mr::picture_quality::fast});
  static_cast<void>(rendered({fast.resize(40, 40), fast, fast.resize(30, 40), fast.flip()}, s));
  CHECK(all_counts(counts)[shared_count] == 9);
}

TEST_CASE("requests of one file are joined if that is less work, and the longest is first") {
  const std::vector<std::byte> one(1'000), two(4'000);
  const mr::detail::plane_size size{.width = 500, .height = 375};
  mr::detail::shared_requests all;
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
