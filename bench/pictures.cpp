// pictures: PNGs compared with libpng, ImageNet's recipe, and both by Pillow and torchvision; then colors and views
//
//   sh bench/run.sh pictures [--quick] [--only rgb]        # rgb, rgb_upper_half, rgba, gray, labels, labels_4, deep,
//                                                          # photographs, imagenet
//
// Millrace's decoder and libpng alternate in decoding PNG files to rows of pixels on one core. The files are
// photographs of 500 x 375 pixels (photo_sets.hpp) and label maps derived from them, written by libpng with its default
// filters. libpng is used as in its manual, row by row, with its transformations. Both decoders must write the same
// bytes. Results are CPU times of this thread. A ratio is that of the sums of each image's least time, because
// neighbors slow down the decoder that runs at that moment. The median of the rounds is printed with its range.
// "photographs" counts the images of 512 that have libpng's bytes. "imagenet" is a crop of a JPEG, a flip, RandAugment,
// f16 and mixup, in a session without worker threads, against the faster of torchvision's two ways. peers/pictures.py
// measures Pillow and torchvision on the same files. A library that is not installed is skipped with a message.
#include "harness.hpp"
#include "parts/picture_peers.hpp"
#include "photo_sets.hpp"

#include <millrace/image/png/png_decoder.hpp>
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

#include <png.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

using pixels = std::vector<std::uint8_t>;
using mr::detail::png_layout;

/// Returns a PNG written by libpng. Its errors end the program, because the images are the benchmark's own.
struct png_writing {
  int color = PNG_COLOR_TYPE_RGB, depth = 8;
  std::size_t channels = 3;
};

std::vector<std::byte> write_png(const pixels& from, std::size_t width, std::size_t height, const png_writing& how) {
  std::vector<std::byte> file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, png_size_t size) {
        const auto bytes = std::as_bytes(std::span(data, size));
        auto& to = *static_cast<std::vector<std::byte>*>(png_get_io_ptr(p));
        to.insert(to.end(), bytes.begin(), bytes.end());
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), how.depth, how.color,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> palette(std::size_t{1} << how.depth % 16);
  for (std::size_t i = 0; i < palette.size(); ++i)
    palette[i] = {static_cast<png_byte>(37 * i), static_cast<png_byte>(91 * i), static_cast<png_byte>(151 * i)};
  if (how.color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_write_info(png, info);
  if (how.depth < 8) png_set_packing(png);
  const std::size_t row = width * how.channels * (how.depth == 16 ? 2 : 1);
  for (std::size_t y = 0; y < height; ++y) png_write_row(png, from.data() + y * row);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

/// The requested output: samples as they are stored, or RGB; down to this row.
struct png_request {
  bool samples = false;
  std::size_t rows = 0;
};

void by_libpng(std::span<const std::byte> file, const png_request& request, pixels& to) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_read_fn(png, &file, [](png_structp p, png_bytep data, png_size_t size) {
    auto& from = *static_cast<std::span<const std::byte>*>(png_get_io_ptr(p));
    std::memcpy(data, from.data(), size);
    from = from.subspan(size);
  });
  png_read_info(png, info);
  if (request.samples) {
    png_set_packing(png);
    png_set_swap(png);
  } else {
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
  }
  png_read_update_info(png, info);
  const std::size_t row = png_get_rowbytes(png, info);
  to.resize(row * request.rows);
  for (std::size_t y = 0; y < request.rows; ++y) png_read_row(png, to.data() + y * row, nullptr);
  if (request.rows == png_get_image_height(png, info)) png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
}

void by_millrace(mr::detail::png_decoder& decoder, std::span<const std::byte> file, const png_request& request,
                 pixels& to) {
  const std::size_t width = decoder.open(file).width;
  std::size_t at = 0;
  decoder.decode({.right = width, .bottom = request.rows},
                 {.layout = request.samples ? png_layout::samples : png_layout::rgb},
                 [&](std::size_t, std::span<const std::uint8_t> row) {
                   if (at == 0) to.resize(row.size() * request.rows);
                   std::memcpy(to.data() + at, row.data(), row.size());
                   at += row.size();
                 });
}

struct photograph {
  std::size_t width, height;
  pixels rgb, luma;
};

std::vector<photograph> read_photographs(const bench::photo_set& set, std::size_t count) {
  std::vector<photograph> photographs;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    while (auto record = reader.next()) {
      if (photographs.size() == count) return photographs;
      const mr::image image = mr::jpeg((*record)["jpg"]).pixels();
      photograph p{.width = image.shape()[1], .height = image.shape()[0], .rgb = {}, .luma = {}};
      p.rgb.assign(image.span().begin(), image.span().end());
      for (std::size_t i = 0; i < p.rgb.size(); i += 3)
        p.luma.push_back(static_cast<std::uint8_t>((p.rgb[i] * 77 + p.rgb[i + 1] * 151 + p.rgb[i + 2] * 28) >> 8));
      photographs.push_back(std::move(p));
    }
  }
  return photographs;
}

/// Up to nine classes, separated by lines of 255: means of squares, blended and quantized.
pixels labels_of(const photograph& p, unsigned border) {
  constexpr std::size_t square = 10;
  const std::size_t columns = p.width / square + 2;
  std::vector<double> mean((p.height / square + 2) * columns, 128);
  for (std::size_t y = 0; y + square <= p.height; y += square)
    for (std::size_t x = 0; x + square <= p.width; x += square) {
      double sum = 0;
      for (std::size_t i = 0; i < square * square; ++i) sum += p.luma[(y + i / square) * p.width + x + i % square];
      mean[y / square * columns + x / square] = sum / (square * square);
    }
  pixels labels(p.width * p.height);
  for (std::size_t y = 0; y < p.height; ++y)
    for (std::size_t x = 0; x < p.width; ++x) {
      const double* const m = &mean[y / square * columns + x / square];
      const double fx = static_cast<double>(x % square) / square, fy = static_cast<double>(y % square) / square;
      const double v = (m[0] * (1 - fx) + m[1] * fx) * (1 - fy) + (m[columns] * (1 - fx) + m[columns + 1] * fx) * fy;
      labels[y * p.width + x] = static_cast<std::uint8_t>(v / 29);
    }
  pixels bordered = labels;
  for (std::size_t i = p.width + 1; i < labels.size(); ++i)
    if (labels[i] != labels[i - 1] || labels[i] != labels[i - p.width]) bordered[i] = static_cast<std::uint8_t>(border);
  return bordered;
}

struct part {
  const char* name;
  png_request request;
  bench::goal target;
  std::function<std::vector<std::byte>(const photograph&)> write;
};

void measure(bench::harness& run, const std::vector<photograph>& photos, const part& what) {
  std::vector<std::vector<std::byte>> files;
  double bytes = 0;
  for (const auto& p : photos) {
    files.push_back(what.write(p));
    bytes += static_cast<double>(files.back().size()) / static_cast<double>(photos.size());
  }
  mr::detail::png_decoder decoder;
  pixels theirs, ours;
  std::vector<double> least[2], rounds[2];
  for (auto& l : least) l.assign(files.size(), 1e9);
  for (int round = 0; round < (run.quick() ? 5 : 25); ++round) {
    double sum[2] = {};
    for (std::size_t i = 0; i < files.size(); ++i) {
      png_request request = what.request;
      if (request.rows == 0) request.rows = photos[i].height;
      const auto timed = [&](std::size_t who, const auto& decode) {
        const double begin = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
        decode();
        const double us = 1e6 * (bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin);
        least[who][i] = std::min(least[who][i], us);
        sum[who] += us;
      };
      timed(0, [&] { by_libpng(files[i], request, theirs); });
      timed(1, [&] { by_millrace(decoder, files[i], request, ours); });
      if (theirs != ours) throw mr::setup_error("Millrace and libpng decode different pixels", "Check png_decoder.hpp");
    }
    for (std::size_t who = 0; who < 2; ++who) rounds[who].push_back(sum[who] / static_cast<double>(files.size()));
  }
  double mean[2] = {};
  for (std::size_t who = 0; who < 2; ++who)
    for (const double us : least[who]) mean[who] += us / static_cast<double>(files.size());
  std::printf("%s: %zu files of %.0f bytes; us per image, medians of the rounds: libpng %s, Millrace %s\n", what.name,
              files.size(), bytes, bench::spread(rounds[0], "%.0f").c_str(), bench::spread(rounds[1], "%.0f").c_str());
  const std::string name = what.name;
  run.result(name + " libpng", mean[0], "us");
  run.result(name + " Millrace", mean[1], "us");
  run.result(name + " times libpng", mean[0] / mean[1], "", what.target);
}

/// Counts the photographs that have libpng's bytes.
void compare(bench::harness& run, const std::vector<photograph>& photos) {
  mr::detail::png_decoder decoder;
  pixels theirs, ours;
  std::size_t equal = 0;
  for (const auto& p : photos) {
    const auto file = write_png(p.rgb, p.width, p.height, {});
    by_libpng(file, {.rows = p.height}, theirs);
    by_millrace(decoder, file, {.rows = p.height}, ours);
    equal += theirs == ours && ours == p.rgb ? 1 : 0;
  }
  run.result("photographs equal to libpng's", static_cast<double>(equal), "",
             bench::at_least(static_cast<double>(photos.size())));
}

struct example {
  mr::normalized_picture<mr::f16> pixels;
  std::int32_t label;
};

example prepare(const mr::record& r, mr::rng& rng) {
  constexpr mr::picture_size size{.width = 224, .height = 224};
  constexpr mr::pixel_normalization imagenet{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
  mr::photometric_plan colors;
  colors.rand_augment(size, rng);
  return {{mr::jpeg(r["jpg"]).random_resized_crop(224, rng).random_flip(rng).apply(colors), imagenet}, 1};
}

/// Returns CPU us per image of ImageNet's recipe: the least of several epochs.
double imagenet_us(const bench::photo_set& set, std::uint64_t epochs) {
  mr::session run{mr::shards(set.names, {.seed = 1, .index = mr::index::off}) | mr::map(prepare) |
                      mr::batch<&example::pixels, &example::label>({.size = 64}) |
                      mr::mixup<&example::pixels, &example::label>({.alpha = 0.8}),
                  {.epochs = epochs, .threads = 0, .notice = mr::quiet}};
  double least = 1e9;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const double begin = bench::now().cpu_s;   // I/O threads too
    std::size_t rows = 0;
    for (auto& b : run.epoch(epoch)) rows += b.size();
    least = std::min(least, (bench::now().cpu_s - begin) / static_cast<double>(rows));
  }
  return 1e6 * least;
}

/// Measures the same work in Pillow and torchvision.
void compare_peers(bench::harness& run, const std::vector<photograph>& photos, const bench::photo_set& set) {
  bench::picture_files files;
  for (const auto& p : photos) {
    files.add("rgb", write_png(p.rgb, p.width, p.height, {}));
    files.add("labels",
              write_png(labels_of(p, 255), p.width, p.height, {.color = PNG_COLOR_TYPE_PALETTE, .channels = 1}));
  }
  mr::block_pool pool;
  std::size_t count = 0;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    for (auto record = reader.next(); record && count < photos.size(); record = reader.next(), ++count)
      files.add("jpg", (*record)["jpg"]);
  }
  const int rounds = run.quick() ? 3 : 10;
  double ours = imagenet_us(set, run.quick() ? 2 : 4);
  const auto theirs = bench::measure_peers(run, files, rounds);
  ours = std::min(ours, imagenet_us(set, run.quick() ? 2 : 4));
  run.result("imagenet Millrace", ours, "us");
  double best = 1e9;
  for (const auto& [name, us] : theirs.us)
    if (name.starts_with("imagenet")) best = std::min(best, us);
  if (best < 1e9) run.result("imagenet, torchvision's time over Millrace's", best / ours, "", bench::at_least(4));
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "pictures");
  return bench::run_guarded([&] {
    const bench::photo_set set = bench::make_photo_set(bench::photo_sets[0]);
    const auto photos = read_photographs(set, run.quick() ? 16 : 64);
    const auto full_png = [](const photograph& p, const pixels& from, const png_writing& how) {
      return write_png(from, p.width, p.height, how);
    };
    const auto rgb = [&](const photograph& p) { return full_png(p, p.rgb, {}); };
    const part parts[] = {
        {"rgb", {}, bench::at_least(2.2), rgb},
        {"rgb_upper_half", {.rows = 180}, {}, rgb},
        {"rgba",
         {},
         {},
         [&](const photograph& p) {
           pixels rgba;
           for (std::size_t i = 0; i < p.luma.size(); ++i)
             rgba.insert(rgba.end(), {p.rgb[3 * i], p.rgb[3 * i + 1], p.rgb[3 * i + 2], p.luma[i]});
           return full_png(p, rgba, {.color = PNG_COLOR_TYPE_RGBA, .channels = 4});
         }},
        {"gray",
         {.samples = true},
         {},
         [&](const photograph& p) { return full_png(p, p.luma, {.color = PNG_COLOR_TYPE_GRAY, .channels = 1}); }},
        {"labels",
         {.samples = true},
         bench::at_least(5),
         [&](const photograph& p) {
           return full_png(p, labels_of(p, 255), {.color = PNG_COLOR_TYPE_PALETTE, .channels = 1});
         }},
        {"labels_4",
         {.samples = true},
         {},
         [&](const photograph& p) {
           return full_png(p, labels_of(p, 15), {.color = PNG_COLOR_TYPE_PALETTE, .depth = 4, .channels = 1});
         }},
        {"deep", {.samples = true}, {}, [&](const photograph& p) {   // a map of depths: smooth, of 16 bits
           pixels deep;
           for (std::size_t i = 0; i < p.luma.size(); ++i)
             for (const std::size_t byte : {i / p.width, p.luma[i] & std::size_t{240}})
               deep.push_back(static_cast<std::uint8_t>(byte));
           return full_png(p, deep, {.color = PNG_COLOR_TYPE_GRAY, .depth = 16, .channels = 1});
         }}};
    for (const part& what : parts)
      if (run.wants(what.name)) measure(run, photos, what);
    if (run.wants("photographs")) compare(run, read_photographs(set, 512));
    if (run.wants("imagenet")) compare_peers(run, photos, set);
    return run.finish();
  });
}
