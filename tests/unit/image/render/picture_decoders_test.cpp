#include <millrace/image/render/picture_renderer.hpp>
#include <millrace/pictures.hpp>

#include "../random_jpegs.hpp"
#include "../photographs.hpp"
#include "../planned_pictures.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace mr = millrace;
using mr::picture_decoder;
using slow::outcome_of, slow::planned, slow::same, slow::shrunk;

namespace {

std::vector<std::byte> with_orientation(std::vector<std::byte> file, int orientation) {
  const auto exif = {0xff, 0xe1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4d, 0x4d, 0, 42, 0, 0, 0, 8,
                     0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
  std::vector<std::byte> segment;
  for (const int v : exif) segment.push_back(static_cast<std::byte>(v));
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

/// Files of narrow last MCUs as well: there libjpeg chooses another upsampling for a crop than for the full image.
slow::random_jpeg draw_any_file(mr::rng& d, std::size_t largest) {
  auto f = slow::draw_file(d, largest);
  if (d.chance(0.7)) return f;
  f.width = 16 * (d.below(3) + 1) + d.below(4);
  f.height = 16 * (d.below(3) + 1) + d.below(4);
  f.bytes = slow::make_file(slow::photo(f.height, f.width, f.channels, d.bits()), f.recipe);
  return f;
}

}  // namespace

TEST_CASE("the built-in decoder and libjpeg compute the same exact images, bit for bit") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 11});
  mr::scratch s;
  const std::size_t files = slow::count_of("MILLRACE_TEST_PICTURES", 1'500) / 3;
  for (std::size_t i = 0; i < files; ++i) {
    const auto f = draw_any_file(d, d.chance(0.1) ? 300 : 80);
    const auto file = with_orientation(f.bytes, static_cast<int>(d.between(1, 8)));
    const mr::jpeg_options own{.decoder = picture_decoder::built_in, .apply_orientation = d.chance(0.5)};
    mr::jpeg_options turbo = own;
    turbo.decoder = picture_decoder::libjpeg;
    mr::jpeg_options either = own;
    either.decoder = picture_decoder::automatic;
    for (std::uint64_t k = 0; k < 8; ++k) {
      const mr::rng plan({.seed = i, .sample = k});
      const auto expected = planned(mr::jpeg(slow::view(file), turbo), plan).pixels(s);
      CAPTURE(i);
      CAPTURE(k);
      INFO(slow::describe(f));
      REQUIRE(same(planned(mr::jpeg(slow::view(file), own), plan).pixels(s), expected));
      REQUIRE(same(planned(mr::jpeg(slow::view(file), either), plan).pixels(s), expected));
    }
  }
}

TEST_CASE("both decoders compute the same exact images of photographs") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 16});
  mr::scratch s;
  slow::for_each_photograph([&](const std::string& name, const std::vector<std::byte>& file) {
    CAPTURE(name);
    for (int k = 0; k < 3; ++k) {
      const mr::rng plan({.seed = d.bits()});
      const auto by = [&](picture_decoder decoder) {
        auto random = plan;
        const auto p = mr::jpeg(slow::view(file), {.decoder = decoder});
        return (k == 0 && p.width() * p.height() < 1'000'000 ? p : p.random_resized_crop(224, random)).pixels(s);
      };
      REQUIRE(same(by(picture_decoder::automatic), by(picture_decoder::libjpeg)));
    }
  });
}

TEST_CASE("the built-in decoder and libjpeg compute the same fast images if these are decoded smaller, bit for bit") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 15});
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  const std::size_t files = slow::count_of("MILLRACE_TEST_PICTURES", 1'500) / 3;
  std::uint64_t pictures = 0;
  for (std::size_t i = 0; i < files; ++i) {
    const auto f = draw_any_file(d, d.chance(0.1) ? 300 : 80);
    if (f.width < 2 || f.height < 2) continue;
    for (std::uint64_t k = 0; k < 8; ++k, ++pictures) {
      const mr::rng plan({.seed = i, .sample = k});
      const auto by = [&](picture_decoder which) {
        return shrunk(mr::jpeg(slow::view(f.bytes), {.quality = mr::picture_quality::fast, .decoder = which}), plan);
      };
      CAPTURE(i);
      CAPTURE(k);
      INFO(slow::describe(f));
      REQUIRE(same(by(picture_decoder::built_in).pixels(s), by(picture_decoder::libjpeg).pixels(s)));
    }
  }
  for (const auto& c : counts.counts())
    if (c.what == std::string_view("JPEGs decoded smaller")) CHECK(c.times == 2 * pictures);
  CHECK(pictures > files);
}

TEST_CASE("for damage that is not left out, it is undefined whether the built-in decoder detects it first") {
  mr::rng d({.seed = slow::seed_of_run(), .sample = 12});
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  const auto left_out = [&] {
    std::uint64_t sum = 0;
    for (const auto& c : counts.counts())
      if (mr::detail::event_of_text(c.what) == mr::detail::event_name::by_restarts) sum = c.times;
    return sum;
  };
  std::size_t errors = 0, pictures = 0, accepted = 0, unseen = 0;
  const std::size_t files = slow::count_of("MILLRACE_TEST_DAMAGED", 1'500);
  for (std::size_t i = 0; i < files; ++i) {
    const auto good = draw_any_file(d, 80);
    const auto file = slow::damaged(good.bytes, d);
    const mr::rng plan({.seed = i});
    const auto quality = d.chance(0.7) ? mr::picture_quality::exact : mr::picture_quality::fast;
    for (const bool accepts : {false, true}) {
      const mr::jpeg_options either{.quality = quality, .accept_damaged = accepts, .limits = {.max_pixels = 100'000}};
      mr::jpeg_options turbo = either;
      turbo.decoder = picture_decoder::libjpeg;
      const auto before = left_out();
      const auto expected = outcome_of(file, turbo, plan, s), got = outcome_of(file, either, plan, s);
      CAPTURE(i);
      CAPTURE(accepts);
      INFO(slow::describe(good));
      if (left_out() > before && expected.warnings > 0) {   // in restart intervals that the crop does not touch
        REQUIRE(got.error.empty());
        REQUIRE((!expected.error.empty() || same(got.pixels, expected.pixels)));
        ++unseen;
        continue;
      }
      REQUIRE(got.error == expected.error);
      REQUIRE(got == expected);
      errors += !expected.error.empty();
      pictures += expected.error.empty() && expected.damaged == 0;
      accepted += expected.damaged;
    }
  }
  CHECK(errors > files / 4);
  CHECK(pictures > files / 8);
  CHECK(accepted > files / 8);
  CHECK(unseen > 0);
  CHECK(unseen < files / 8);
}

namespace {

/// Images of every kind, the damaged ones apart.
struct mixed_pictures {
  std::vector<std::vector<std::byte>> files{};
  std::vector<mr::picture> pictures{};

  mixed_pictures(mr::rng& d, std::size_t count, const mr::jpeg_options& options = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      auto f = draw_any_file(d, 90);
      if (d.chance(0.2)) {
        f.recipe.progressive = true;
        f.bytes = slow::make_file(slow::photo(f.height, f.width, f.channels, i), f.recipe);
      }
      files.push_back(std::move(f.bytes));
    }
    for (std::size_t i = 0; i < count; ++i)
      pictures.push_back(planned(mr::jpeg(slow::view(files[i]), options), mr::rng({.sample = i})));
  }
};

std::vector<mr::image> render_together(const std::vector<mr::picture>& all, std::size_t first, std::size_t count,
                                       mr::scratch& s) {
  std::vector<const mr::picture*> items;
  std::vector<mr::image> images;
  std::vector<std::span<std::uint8_t>> rows;
  for (std::size_t i = first; i < first + count; ++i) {
    items.push_back(&all[i]);
    images.emplace_back(all[i].shape());
  }
  for (auto& m : images) rows.push_back(m.span());
  mr::picture::render_together(items, rows, s);
  return images;
}

std::map<std::string, std::uint64_t> counts_of(const mr::event_counts& t) {
  std::map<std::string, std::uint64_t> all;
  for (const auto& c : t.counts()) all[c.what] = c.times;
  return all;
}

}  // namespace

TEST_CASE("images that are rendered together are the same as alone, whoever the partners") {
  mr::rng d({.seed = 13});
  for (const auto quality : {mr::picture_quality::exact, mr::picture_quality::fast}) {
    const mixed_pictures all(d, 200, {.quality = quality});
    mr::scratch s, alone;
    for (int i = 0; i < 300; ++i) {
      const std::size_t count = d.below(mr::picture::together - 1) + 2;
      const std::size_t first = d.below(all.pictures.size() - count + 1);
      const auto images = render_together(all.pictures, first, count, s);
      for (std::size_t k = 0; k < count; ++k) REQUIRE(same(images[k], all.pictures[first + k].pixels(alone)));
    }
  }
}

TEST_CASE("together, the error is that of the image that has one, and nothing of the group is counted") {
  mr::rng d({.seed = 14});
  mixed_pictures all(d, 2);
  auto cut = slow::make_file(slow::photo(60, 60, 3, 1), {});
  cut.resize(cut.size() / 2);
  const auto& bad = all.pictures.emplace_back(mr::jpeg(slow::view(cut)));
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  std::string alone;
  try {
    (void)bad.pixels(s);
  } catch (const mr::data_error& e) {
    alone = e.what();
  }
  CHECK(alone.find("cannot be decoded") != std::string::npos);
  try {
    (void)render_together(all.pictures, 0, 3, s);
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.what() == alone);
  }
  CHECK(counts.counts().empty());
  CHECK(same(all.pictures[0].pixels(s), all.pictures[0].pixels()));
  CHECK(counts.counts().size() >= 1);
}

TEST_CASE("a JPEG whose first marker is damaged is decoded if damage is accepted, and is an error otherwise") {
  const auto file = slow::make_file(slow::photo(40, 50, 3, 1), {});
  auto damaged = file;
  REQUIRE(damaged[2] == std::byte{0xff});
  damaged[2] = std::byte{0x7f};
  CHECK_THROWS_WITH_AS(static_cast<void>(mr::jpeg(slow::view(damaged))),
                       doctest::Contains("the JPEG's first marker is damaged: got ff d8 7f e0"), mr::data_error);
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  CHECK(same(mr::jpeg(slow::view(damaged), {.accept_damaged = true}).pixels(s), mr::jpeg(slow::view(file)).pixels(s)));
  CHECK(counts_of(counts)["damaged JPEGs accepted"] == 1);
}

TEST_CASE("counts show the decoder, and the reason for libjpeg") {
  const auto pixels = slow::photo(64, 80, 3, 2);
  const auto plain = slow::make_file(pixels, {}), progressive = slow::make_file(pixels, {.progressive = true});
  auto cut = plain;
  cut.resize(cut.size() / 2);
  const auto odd = mr::encode_jpeg(pixels, {.sampling = mr::chroma_sampling::yuv411});
  const auto rgb = mr::encode_jpeg(pixels, {.keep_rgb = true});
  const mr::picture p = mr::jpeg(slow::view(plain), {.quality = mr::picture_quality::fast});
  const std::vector<mr::picture> all{p, p, p, mr::jpeg(slow::view(progressive))};
  mr::scratch s;
  mr::event_counts counts;
  s.count_into(counts);
  (void)render_together(all, 0, 4, s);
  (void)render_together(all, 2, 2, s);
  (void)p.pixels(s);
  (void)p.resize(8, 8).pixels(s);
  (void)mr::jpeg(slow::view(odd)).pixels(s);
  (void)mr::jpeg(slow::view(rgb)).pixels(s);
  (void)mr::jpeg(slow::view(cut), {.decoder = picture_decoder::libjpeg, .accept_damaged = true}).pixels(s);
  (void)mr::jpeg(slow::view(plain), {.decoder = picture_decoder::libjpeg}).pixels(s);
  (void)mr::jpeg(slow::view(plain), {.decoder = picture_decoder::built_in}).pixels(s);
  auto totals = counts_of(counts);
  CHECK(totals["JPEGs by the built-in decoder, several at once"] == 6);
  CHECK(totals["JPEGs by the built-in decoder, alone"] == 3);
  CHECK(totals["JPEGs by libjpeg: as requested"] == 2);
  CHECK(totals["JPEGs decoded smaller"] == 1);
  CHECK(totals["JPEGs by libjpeg: sampling"] == 1);
  CHECK(totals["JPEGs by libjpeg: color space"] == 1);
  CHECK(totals["progressive JPEGs"] == 2);
  CHECK(totals["damaged JPEGs accepted"] == 1);
  CHECK(totals["warnings of libjpeg"] == mr::detail::jpeg_counts_of(s).warnings);
  CHECK(totals["warnings of libjpeg"] >= 1);
  CHECK(totals["bytes of JPEGs"] == 7 * plain.size() + 2 * progressive.size() + odd.size() + rgb.size() + cut.size() +
                                       plain.size());
  CHECK(totals["pixels of JPEGs"] == 13 * 64 * 80);
  CHECK(mr::detail::jpeg_counts_of(s).pictures == 13);
  try {
    (void)mr::jpeg(slow::view(odd), {.decoder = picture_decoder::built_in}).pixels(s);
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.message() == "the built-in decoder was requested but does not support this JPEG: sampling");
  }
}
