#include <millrace/item/record_builder.hpp>
#include <millrace/pictures.hpp>

#include "../../../thorough.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mr = millrace;

namespace {

constexpr std::array samplings{mr::chroma_sampling::yuv444, mr::chroma_sampling::yuv422, mr::chroma_sampling::yuv440,
                               mr::chroma_sampling::yuv420, mr::chroma_sampling::yuv411};

/// Files of every kind that libjpeg reads to RGB.
struct any_file {
  std::vector<std::byte> data;
  mr::image pixels;   // the full image, decoded plainly
};

any_file random_file(mr::rng& d, std::size_t height, std::size_t width) {
  const bool gray = d.chance(0.1);
  mr::jpeg_encode_options o{.quality = static_cast<int>(d.between(30, 100))};
  o.sampling = samplings[d.below(samplings.size())];
  o.progressive = d.chance(0.15);
  o.arithmetic = d.chance(0.05);
  o.keep_rgb = d.chance(0.1);
  o.restart_rows = d.chance(0.2) ? 1 : 0;
  any_file result{.data = mr::encode_jpeg(slow::photo(height, width, gray ? 1 : 3, d.bits()), o), .pixels = {}};
  result.pixels = slow::decode(result.data);
  return result;
}

bool same(const mr::image& a, const mr::image& b) {
  return a.shape() == b.shape() && std::equal(a.span().begin(), a.span().end(), b.span().begin());
}

mr::crop_box random_box(mr::rng& d, std::size_t height, std::size_t width) {
  mr::crop_box box;
  box.width = d.chance(0.1) ? 1 : static_cast<std::size_t>(d.between(1, static_cast<std::int64_t>(width)));
  box.height = d.chance(0.1) ? 1 : static_cast<std::size_t>(d.between(1, static_cast<std::int64_t>(height)));
  box.left = d.below(width - box.width + 1);
  box.top = d.below(height - box.height + 1);
  return box;
}

}  // namespace

TEST_CASE("a crop has the full decode's pixels bit for bit") {
  mr::rng d({.seed = 1});
  mr::scratch s;
  for (int i = 0; i < 60; ++i) {
    const auto height = static_cast<std::size_t>(d.between(1, 130)),
               width = static_cast<std::size_t>(d.between(1, 130));
    const auto file = random_file(d, height, width);
    REQUIRE(same(mr::jpeg(slow::view(file.data)).pixels(s), file.pixels));
    for (int k = 0; k < 12; ++k) {
      const auto box = random_box(d, height, width);
      CAPTURE(box.left);
      CAPTURE(box.top);
      CAPTURE(box.width);
      CAPTURE(box.height);
      REQUIRE(same(mr::jpeg(slow::view(file.data)).crop(box).pixels(s), slow::crop(file.pixels, box)));
    }
  }
}

TEST_CASE("libjpeg's crop of the first or the last two columns has the full decode's pixels, too") {
  const auto file = mr::encode_jpeg(slow::photo(34, 18, 3, 6), {.sampling = mr::chroma_sampling::yuv420});
  const auto full = slow::decode(file);
  for (const std::size_t left : {0, 15, 16, 17}) {
    const mr::crop_box box{.left = left, .top = 5, .width = left == 0 ? 1 : 18 - left, .height = 20};
    const auto p = mr::jpeg(slow::view(file), {.decoder = mr::picture_decoder::libjpeg}).crop(box);
    CHECK(same(p.pixels(), slow::crop(full, box)));
  }
}

TEST_CASE("crop, resize and flip are within one level of the same steps in real numbers") {
  mr::rng d({.seed = 2});
  mr::scratch s;
  double mean = 0;
  const std::size_t files = 50 / stride(2), plans = 10;
  for (std::size_t i = 0; i < files; ++i) {
    const auto height = static_cast<std::size_t>(d.between(1, i % 10 == 0 ? 700 : 100));
    const auto width = static_cast<std::size_t>(d.between(1, i % 10 == 1 ? 700 : 100));
    const auto file = random_file(d, height, width);
    for (std::size_t k = 0; k < plans; ++k) {
      const auto box = random_box(d, height, width);
      const auto target_height = static_cast<std::size_t>(d.between(1, 70)),
                 target_width = static_cast<std::size_t>(d.between(1, 70));
      const bool flips = d.chance(0.5);
      auto p = mr::jpeg(slow::view(file.data)).crop(box).resize(target_height, target_width);
      if (flips) p = p.flip();
      auto expected = slow::resize(slow::real(slow::crop(file.pixels, box)), target_height, target_width);
      if (flips) expected = slow::flip(expected);
      const auto gap = slow::compare(p.pixels(s), expected);
      CAPTURE(height);
      CAPTURE(width);
      CHECK(gap.max <= 1);
      mean += gap.mean / static_cast<double>(files * plans);
    }
  }
  CHECK(mean < 0.02);
}

TEST_CASE("crop and resize are within one level of Pillow's way, which rounds to integer levels between the two axes") {
  const auto rounded = [](slow::real_image image) {
    for (auto& v : image.span()) v = std::floor(v + 0.5);
    return image;
  };
  mr::rng d({.seed = 12});
  for (int i = 0; i < 60; ++i) {
    const auto height = static_cast<std::size_t>(d.between(1, 120));
    const auto width = static_cast<std::size_t>(d.between(1, 120));
    const auto file = random_file(d, height, width);
    const auto box = random_box(d, height, width);
    const auto rows = static_cast<std::size_t>(d.between(1, 70));
    const auto columns = static_cast<std::size_t>(d.between(1, 70));
    const auto across = slow::resize_rows(slow::transpose(slow::real(slow::crop(file.pixels, box))), columns);
    const auto pillow = slow::resize_rows(slow::transpose(rounded(across)), rows);
    CHECK(slow::compare(mr::jpeg(slow::view(file.data)).crop(box).resize(rows, columns).pixels(), pillow).max <= 1);
  }
}

TEST_CASE("a crop after a resize is within one level of resizing everything before cropping") {
  mr::rng d({.seed = 3});
  mr::scratch s;
  for (int i = 0; i < 40; ++i) {
    const auto height = static_cast<std::size_t>(d.between(20, 150)),
               width = static_cast<std::size_t>(d.between(20, 150));
    const auto file = random_file(d, height, width);
    const auto full_image = slow::resize(slow::real(file.pixels), 45, 61);
    const auto box = random_box(d, 45, 61);
    CHECK(
        slow::compare(mr::jpeg(slow::view(file.data)).resize(45, 61).crop(box).pixels(s), slow::crop(full_image, box))
                .max <= 1);
    const auto mirrored = slow::flip(slow::crop(slow::flip(full_image), box));
    CHECK(
        slow::compare(mr::jpeg(slow::view(file.data)).resize(45, 61).flip().crop(box).flip().pixels(s), mirrored).max <=
        1);

    const auto eval = mr::jpeg(slow::view(file.data)).resize_shorter(32);
    CHECK(std::min(eval.width(), eval.height()) == 32);
    CHECK(std::max(eval.width(), eval.height()) == 32 * std::max(width, height) / std::min(width, height));
    const auto full = slow::resize(slow::real(file.pixels), eval.height(), eval.width());
    // torchvision: the offset is round(rest / 2), halves to even.
    const auto offset = [](std::size_t rest) {
      return static_cast<std::size_t>(std::nearbyint(static_cast<double>(rest) / 2));
    };
    const mr::crop_box center{
        .left = offset(eval.width() - 25), .top = offset(eval.height() - 26), .width = 25, .height = 26};
    CHECK(slow::compare(eval.center_crop(26, 25).pixels(s), slow::crop(full, center)).max <= 1);
  }
}

TEST_CASE("a crop of a crop is a crop, and a resize of a resize is one resize") {
  mr::rng d({.seed = 4});
  const auto file = random_file(d, 90, 80);
  const auto p = mr::jpeg(slow::view(file.data));
  CHECK(same(p.crop({.left = 10, .top = 20, .width = 50, .height = 60})
                 .crop({.left = 3, .top = 4, .width = 20, .height = 30})
                 .pixels(),
             p.crop({.left = 13, .top = 24, .width = 20, .height = 30}).pixels()));
  CHECK(same(p.resize(64, 64).resize(20, 30).pixels(), p.resize(20, 30).pixels()));
  // A box of a resized image whose edges are on source pixels.
  CHECK(same(p.resize(45, 40).crop({.left = 5, .top = 10, .width = 20, .height = 25}).resize(16, 17).pixels(),
             p.crop({.left = 10, .top = 20, .width = 40, .height = 50}).resize(16, 17).pixels()));
  // Any other: close to doing it twice, where the image is smooth.
  mr::image smooth({90, 80, 3});
  for (std::size_t y = 0; y < 90; ++y)
    for (std::size_t x = 0; x < 80; ++x)
      for (std::size_t c = 0; c < 3; ++c) smooth(y, x, c) = static_cast<std::uint8_t>(40 + y + x);
  const auto plain = mr::encode_jpeg(smooth, {.quality = 100, .sampling = mr::chroma_sampling::yuv444});
  const auto first = slow::resize(slow::real(slow::decode(plain)), 47, 41);
  const auto twice = slow::resize(slow::crop(first, {.left = 7, .top = 9, .width = 23, .height = 29}), 31, 25);
  const auto once =
      mr::jpeg(slow::view(plain)).resize(47, 41).crop({.left = 7, .top = 9, .width = 23, .height = 29}).resize(31, 25);
  CHECK(slow::compare(once.pixels(), twice).max <= 3);
  auto often = p;
  CHECK_THROWS_AS(for (std::size_t i = 0; i < 9; ++i) often =
                      often.resize(61 + i, 67 + i).crop({.left = 1, .top = 1, .width = 53, .height = 47});
                  , mr::setup_error);
}

TEST_CASE("the eight orientations are shown upright, with crop, resize and flip on top") {
  // The rotation of the stored image by CIPA DC-008.
  const auto upright = [](const mr::image& p, int orientation) {
    const auto upside_down = [](const mr::image& x) { return slow::transpose(slow::flip(slow::transpose(x))); };
    switch (orientation) {
      case 2: return slow::flip(p);
      case 3: return upside_down(slow::flip(p));
      case 4: return upside_down(p);
      case 5: return slow::transpose(p);
      case 6: return slow::flip(slow::transpose(p));                // a quarter turn clockwise
      case 7: return upside_down(slow::flip(slow::transpose(p)));
      case 8: return upside_down(slow::transpose(p));               // a quarter turn counter-clockwise
      default: return p;
    }
  };
  mr::rng d({.seed = 5});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    auto file = random_file(d, 40, 60);
    const auto exif = {0xff, 0xe1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4d, 0x4d, 0, 42, 0, 0, 0, 8,
                       0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0};
    std::vector<std::byte> segment;
    for (const int v : exif) segment.push_back(static_cast<std::byte>(v));
    file.data.insert(file.data.begin() + 2, segment.begin(), segment.end());
    CHECK(same(mr::jpeg(slow::view(file.data)).pixels(), file.pixels));
    const auto p = mr::jpeg(slow::view(file.data), {.apply_orientation = true});
    const auto expected = upright(file.pixels, orientation);
    CHECK(p.header().orientation == orientation);
    CHECK(same(p.pixels(), expected));
    const mr::crop_box box{.left = 3, .top = 7, .width = 25, .height = 31};
    CHECK(same(p.crop(box).pixels(), slow::crop(expected, box)));
    CHECK(slow::compare(p.crop(box).flip().resize(20, 17).pixels(),
                        slow::resize(slow::real(slow::flip(slow::crop(expected, box))), 20, 17)).max <= 1);
  }
}

TEST_CASE("the fast quality decodes smaller only if that covers the target, and stays close") {
  mr::image smooth({240, 320, 3});
  for (std::size_t y = 0; y < 240; ++y)
    for (std::size_t x = 0; x < 320; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        smooth(y, x, c) = static_cast<std::uint8_t>(128 + 60 * std::sin(0.05 * static_cast<double>(x + c * 7)) +
                                                    50 * std::cos(0.04 * static_cast<double>(y)));
  mr::rng d({.seed = 6});
  for (const auto sampling : samplings) {
    const auto file = mr::encode_jpeg(smooth, {.quality = 95, .sampling = sampling});
    const auto exact = mr::jpeg(slow::view(file)),
               fast = mr::jpeg(slow::view(file), {.quality = mr::picture_quality::fast});
    for (int i = 0; i < 20; ++i) {
      auto box = random_box(d, 240, 320);
      box.width = std::max<std::size_t>(box.width, 60);
      box.height = std::max<std::size_t>(box.height, 60);
      box.left = std::min(box.left, 320 - box.width);
      box.top = std::min(box.top, 240 - box.height);
      const auto small = std::size_t{8} << d.below(3);
      const auto gap = slow::compare(fast.crop(box).resize(small, small).pixels(),
                                     slow::real(exact.crop(box).resize(small, small).pixels()));
      CHECK(gap.mean < (small < 32 ? 4 : 1));   // the error is at the crop's edges, a larger share of a small result
      CHECK(gap.max < 16);
      // Not smaller: the only difference is that chroma is resized before the color conversion.
      const auto difference = slow::compare(fast.crop(box).resize(box.height, box.width / 2 + 1).pixels(),
                                       slow::real(exact.crop(box).resize(box.height, box.width / 2 + 1).pixels()));
      CHECK(difference.max <= 2);
      CHECK(difference.mean < 0.5);
    }
    // At exactly 1/2, 1/4 and 1/8, without a crop, the decoder alone computes the image.
    for (const unsigned eighths : {1U, 2U, 4U})
      CHECK(same(fast.resize(30 * eighths, 40 * eighths).pixels(), slow::decode(file, JCS_RGB, eighths)));
  }
}

TEST_CASE("CMYK and YCCK files become RGB as in Pillow") {
  mr::image ink({40, 50, 4});
  for (std::size_t y = 0; y < 40; ++y)
    for (std::size_t x = 0; x < 50; ++x)
      for (std::size_t c = 0; c < 4; ++c) ink(y, x, c) = static_cast<std::uint8_t>(255 - (y * 3 + x * (c + 1)) % 200);
  for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
    jpeg_error_mgr messages{};
    jpeg_compress_struct info{};
    info.err = jpeg_std_error(&messages);
    messages.error_exit = slow::stop;
    jpeg_create_compress(&info);
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &memory, &size);
    info.image_height = 40;
    info.image_width = 50;
    info.input_components = 4;
    info.in_color_space = JCS_CMYK;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, space);
    jpeg_start_compress(&info, 1);
    while (info.next_scanline < 40) {
      JSAMPROW row = ink.data() + std::size_t{info.next_scanline} * 200;
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    const auto* begin = reinterpret_cast<const std::byte*>(memory);
    const std::vector<std::byte> file(begin, begin + size);
    std::free(memory);

    const auto stored = slow::decode(file, JCS_CMYK);
    mr::image expected({40, 50, 3});
    for (std::size_t y = 0; y < 40; ++y)
      for (std::size_t x = 0; x < 50; ++x)
        for (std::size_t c = 0; c < 3; ++c) {
          // Ink is stored inverted: (1 - C)(1 - K) in fractions of 255, the product of C and 1 - K rounded.
          const double cyan = 255 - stored(y, x, c), light = stored(y, x, 3);
          expected(y, x, c) = static_cast<std::uint8_t>(light - std::floor(cyan * light / 255 + 0.5));
        }
    CHECK(mr::jpeg(slow::view(file)).header().components == 4);
    CHECK(same(mr::jpeg(slow::view(file)).pixels(), expected));
    const mr::crop_box box{.left = 9, .top = 11, .width = 30, .height = 20};
    CHECK(same(mr::jpeg(slow::view(file)).crop(box).pixels(), slow::crop(expected, box)));
  }
}

TEST_CASE("a plan renders the shape that it reports, and wrong sizes are refused") {
  mr::rng d({.seed = 8});
  const auto file = random_file(d, 30, 40);
  const auto p = mr::jpeg(slow::view(file.data));
  CHECK(p.shape() == std::array<std::size_t, 3>{30, 40, 3});
  CHECK(p.random_resized_crop(16, d).random_flip(d).shape() == std::array<std::size_t, 3>{16, 16, 3});
  CHECK(p.random_resized_crop({.width = 5, .height = 9}, d).shape() == std::array<std::size_t, 3>{9, 5, 3});
  mr::scratch s;
  std::vector<std::uint8_t> row(30 * 40 * 3 - 1);
  CHECK_THROWS_AS(p.render(row, s), mr::setup_error);
  CHECK_THROWS_AS((void)p.resize(0, 5), mr::setup_error);
  CHECK_THROWS_AS((void)p.resize(5, 70'000), mr::setup_error);
  CHECK_THROWS_AS((void)p.resize_shorter(~std::size_t{0}), mr::setup_error);
  CHECK_THROWS_AS((void)p.center_crop(31, 40), mr::data_error);
  CHECK_THROWS_AS((void)p.crop({.left = 1, .top = 0, .width = 40, .height = 30}), mr::data_error);
  CHECK_THROWS_AS((void)p.crop({.left = ~std::size_t{0}, .top = 0, .width = 2, .height = 30}), mr::data_error);
  CHECK_THROWS_AS((void)p.crop({.left = 0, .top = 0, .width = 0, .height = 30}), mr::data_error);
}

TEST_CASE("a call returns another plan and leaves its original unchanged") {
  mr::rng d({.seed = 12});
  const auto file = random_file(d, 30, 40);
  auto p = mr::jpeg(slow::view(file.data));
  const auto twice = p.crop({.left = 3, .top = 4, .width = 20, .height = 10}).flip();
  static_cast<void>(p.center_crop(8).filter(mr::resize_filter::bicubic).resize_within({.width = 4, .height = 4}));
  CHECK_THROWS_AS((void)p.crop({.left = 0, .top = 0, .width = 41, .height = 30}), mr::data_error);
  CHECK(same(p.pixels(), file.pixels));
  p = p.crop({.left = 3, .top = 4, .width = 20, .height = 10});
  CHECK(same(p.flip().pixels(), twice.pixels()));
}

TEST_CASE("a random flip follows the stream's coin, and random crops are those of random_crop_box") {
  mr::rng d({.seed = 9});
  const auto file = random_file(d, 30, 40);
  const auto p = mr::jpeg(slow::view(file.data));
  int flips = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    mr::rng one({.sample = i}), two({.sample = i});
    const auto q = p.random_resized_crop(8, one).random_flip(one, 0.3);
    const auto box = mr::detail::random_crop_box({.width = 40, .height = 30}, two);
    const bool flipped = two.chance(0.3);
    flips += flipped;
    if (i % 20 == 0)
      CHECK(same(q.pixels(), (flipped ? p.crop(box).resize(8, 8).flip() : p.crop(box).resize(8, 8)).pixels()));
  }
  CHECK((flips > 80 && flips < 160));
  CHECK(same(p.random_flip(d, 1).pixels(), slow::flip(file.pixels)));
  CHECK(same(p.random_flip(d, 0).pixels(), file.pixels));
}

TEST_CASE("a picture outlives its record, and its errors name shard and key") {
  mr::rng d({.seed = 10});
  const auto file = random_file(d, 20, 20);
  mr::block_pool pool;
  mr::record_builder build(pool);
  const auto fill = [&](std::string_view name, std::span<const std::byte> data) {
    std::copy(data.begin(), data.end(), build.add_field(name, data.size()).begin());
  };
  build.begin("train-7.tar", "0042", 512);
  fill("jpg", file.data);
  fill("cut", std::span(file.data).first(file.data.size() * 3 / 4));
  fill("png", std::as_bytes(std::span("\x89PNG", 4)));
  mr::picture good = mr::jpeg(mr::bytes::borrowed(file.data)), cut = good;
  {
    const mr::record r = build.finish();
    good = mr::jpeg(r["jpg"]);
    cut = mr::jpeg(r["cut"]);
    try {
      (void)mr::jpeg(r["png"]);
      FAIL("no error");
    } catch (const mr::data_error& e) {
      CHECK(e.where().shard == "train-7.tar");
      CHECK(e.where().key == "0042");
      CHECK(e.where().stage == "jpeg");
    }
  }
  build.begin("x", "y", 0);
  fill("jpg", std::vector<std::byte>(file.data.size() * 2));
  CHECK(same(good.pixels(), file.pixels));
  try {
    (void)cut.pixels();
    FAIL("no error");
  } catch (const mr::data_error& e) {
    CHECK(e.where().key == "0042");
    CHECK(e.message().find("the JPEG cannot be decoded: ") == 0);
  }
}
