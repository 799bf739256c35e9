// decode: JPEG bytes to planes, and to rows of a batch, on one core, by the built-in decoder and by libjpeg-turbo
//
// Crops are random resized crops of photographs, with two pixels of margin. libjpeg-turbo decodes only the crop to RGBX
// rows that are discarded, which is its fastest method (crop and skip), and to raw planes down to the crop's last row.
// Rendering covers everything from the header to 224 x 224 exact pixels in a row that is not in the cache. The library
// renders several images at once; the plain way decodes the complete image by libjpeg-turbo and then resizes the crop
// with antialiasing in floats. XL are large photographs, of which `fast` decodes a part if the crop is large enough;
// the difference compares its pixels with exact ones. P are the images of M with progressive coding.
// All variants alternate on groups of eight images. The CPU time of this thread counts. Other programs slow down the
// variant that runs at that moment, so ratios use least times: the sum of each group's least time of all rounds. The
// median of the rounds is printed as well.
#include "crop_tasks.hpp"
#include "harness.hpp"
#include "photo_sets.hpp"
#include "progressive_file.hpp"
#include "turbo.hpp"

#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>
#include <millrace/millrace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

namespace mr = millrace;
using bench::cold_rows, bench::crop_task, bench::make_tasks, bench::planned, bench::render_all, bench::side,
    bench::take_turns, bench::variant;

namespace {

/// The triangle filter of Pillow's "antialias", in floats, without optimizations: columns first, then rows.
class plain_resize {
 public:
  void run(const mr::image& from, const mr::crop_box& box, std::uint8_t* to) {
    build(box.width, across_);
    build(box.height, down_);
    lines_.assign(box.height * side * 3, 0.0F);
    for (std::size_t y = 0; y < box.height; ++y)
      for (std::size_t o = 0; o < side; ++o)
        for (std::size_t k = 0; k < across_[o].weights.size(); ++k)
          for (std::size_t c = 0; c < 3; ++c)
            lines_[(y * side + o) * 3 + c] += across_[o].weights[k] *
                                              from(box.top + y, box.left + across_[o].first + k, c);
    for (std::size_t o = 0; o < side; ++o) {
      row_.assign(side * 3, 0.5F);
      for (std::size_t k = 0; k < down_[o].weights.size(); ++k) {
        const float weight = down_[o].weights[k];
        const float* line = lines_.data() + (down_[o].first + k) * side * 3;
        for (std::size_t x = 0; x < side * 3; ++x) row_[x] += weight * line[x];
      }
      for (std::size_t x = 0; x < side * 3; ++x) to[o * side * 3 + x] = static_cast<std::uint8_t>(row_[x]);
    }
  }

 private:
  struct taps {
    std::size_t first = 0;
    std::vector<float> weights{};
  };

  static void build(std::size_t length, std::vector<taps>& all) {
    all.resize(side);
    const float scale = static_cast<float>(length) / side, reach = std::max(scale, 1.0F);
    for (std::size_t o = 0; o < side; ++o) {
      const float center = (static_cast<float>(o) + 0.5F) * scale;
      const auto first = static_cast<std::size_t>(std::max(0.0F, center - reach));
      const std::size_t end = std::min(length, static_cast<std::size_t>(center + reach) + 1);
      all[o].first = first;
      all[o].weights.clear();
      float sum = 0;
      for (std::size_t i = first; i < end; ++i) {
        const float weight = 1 - std::abs(static_cast<float>(i) + 0.5F - center) / reach;
        all[o].weights.push_back(std::max(weight, 0.0F));
        sum += all[o].weights.back();
      }
      for (auto& w : all[o].weights) w /= sum;
    }
  }

  std::vector<taps> across_, down_;
  std::vector<float> lines_, row_;
};

/// The difference of `fast` pixels from exact ones, in levels.
struct level_difference {
  double mean = 0, largest = 0;
};

level_difference difference_of_fast(const std::vector<crop_task>& tasks, mr::scratch& s) {
  level_difference d;
  std::size_t samples = 0;
  for (const auto& t : tasks) {
    const auto exact = planned(t, {}).pixels(s), fast = planned(t, {.quality = mr::picture_quality::fast}).pixels(s);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double gap = std::abs(exact.span()[i] - fast.span()[i]);
      d.mean += gap;
      d.largest = std::max(d.largest, gap);
    }
    samples += exact.size();
  }
  d.mean /= static_cast<double>(samples);
  return d;
}

void measure(bench::harness& run, const bench::photo_set_recipe& recipe) {
  const auto set = bench::make_photo_set(recipe);
  const auto tasks = make_tasks(set, run.quick() ? 256 : 1'024);
  std::vector<mr::detail::jpeg_planes_request> requests;
  for (const auto& t : tasks) requests.push_back(t.request);
  mr::detail::jpeg_plane_decoder own, portable(mr::detail::jpeg_plane_decoder::code::portable);
  bench::turbo libjpeg;
  plain_resize plain;
  cold_rows ring;
  mr::scratch memory;
  std::size_t refused = 0;
  const auto in_pairs = [&](mr::detail::jpeg_plane_decoder& decoder, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i + 1 < end; i += 2)
      for (const auto& result : decoder.decode(requests[i], requests[i + 1])) refused += !result;
  };
  const auto rendered = [&](std::size_t together, const mr::jpeg_options& options,
                            mr::resize_filter filter = mr::resize_filter::bilinear) {
    return [&, together, options, filter](std::size_t begin, std::size_t end) {
      render_all(std::span(tasks).subspan(begin, end - begin), together, options, filter, ring, memory);
    };
  };
  constexpr auto fast = mr::picture_quality::fast;
  constexpr auto by_libjpeg = mr::picture_decoder::libjpeg;
  variant variants[] = {
      {"libjpeg-turbo, the region to RGBX",
       [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) libjpeg.region(requests[i]);
       }},
      {"libjpeg-turbo, raw planes",
       [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) libjpeg.planes(requests[i]);
       }},
      {"own, alone",
       [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) refused += !own.decode(requests[i]);
       }},
      {"own, pairs", [&](std::size_t i, std::size_t end) { in_pairs(own, i, end); }},
      {"own, two of a list",
       [&](std::size_t i, std::size_t end) {
         own.decode_each(std::span(requests).subspan(i, end - i), [&](std::size_t, const auto& r) { refused += !r; });
       }},
      {"own, portable code, pairs", [&](std::size_t i, std::size_t end) { in_pairs(portable, i, end); }},
      {"rendered, plain way",
       [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) plain.run(libjpeg.decode_rgb(tasks[i].file), tasks[i].box, ring.next().data());
       }},
      {"rendered, libjpeg-turbo's region", rendered(1, {.decoder = by_libjpeg})},
      {"rendered, alone", rendered(1, {})},
      {"rendered, 2 at once", rendered(2, {})},
      {"rendered, as a batch does", rendered(mr::picture::together, {})},
      {"rendered, fast, as a batch does", rendered(mr::picture::together, {.quality = fast})},
      {"rendered, fast, libjpeg-turbo's", rendered(1, {.quality = fast, .decoder = by_libjpeg})},
      {"rendered, bicubic, as a batch does", rendered(mr::picture::together, {}, mr::resize_filter::bicubic)},
      {"rendered, fast, bicubic, as a batch does",
       rendered(mr::picture::together, {.quality = fast}, mr::resize_filter::bicubic)}};
  take_turns(variants, tasks.size(), run.quick() ? 5 : 10);
  const std::string set_name = recipe.name;
  std::printf("%s: %zu images of %.1f KB; us per image, least and median of rounds\n", recipe.name, tasks.size(),
              set.file_bytes / 1e3);
  for (const auto& v : variants)
    std::printf("  %-36s %7.1f   %s\n", v.name, v.least_us, bench::spread(v.us, "%.1f").c_str());
  for (const auto& v : variants) run.result(set_name + ": " + v.name, v.least_us, "us");
  const auto ratio = [&](std::size_t of, std::size_t to) { return variants[of].least_us / variants[to].least_us; };
  run.result(set_name + ": own alone, times libjpeg-turbo's region", ratio(0, 2), "x");
  run.result(set_name + ": own pairs, times libjpeg-turbo's region", ratio(0, 3), "x");
  run.result(set_name + ": own list, times libjpeg-turbo's region", ratio(0, 4), "x");
  run.result(set_name + ": bicubic as a batch does, times the time of bilinear", ratio(13, 10), "x");
  run.result(set_name + ": fast bicubic as a batch does, times the time of bilinear", ratio(14, 11), "x");
  const auto gap = difference_of_fast(tasks, memory);
  run.result(set_name + ": fast from exact, mean", gap.mean, "levels");
  run.result(set_name + ": fast from exact, most", gap.largest, "levels");
  if (set_name == bench::large_photo_set.name) {
    run.result(set_name + ": fast as a batch does, times exact", ratio(10, 11), "x");
    run.result(set_name + ": fast as a batch does, times libjpeg-turbo's region alone", ratio(0, 11), "x");
    run.result(set_name + ": fast as a batch does, times libjpeg-turbo's decode of as little", ratio(12, 11), "x");
    run.result(set_name + ": fast as a batch does, times the plain way", ratio(6, 11), "x");
  } else {
    run.result(set_name + ": rendered as a batch does, times libjpeg-turbo's region alone", ratio(0, 10), "x",
               bench::at_least(2.1));
    run.result(set_name + ": rendered as a batch does, times the plain way", ratio(6, 10), "x",
               bench::at_least(set_name == "L" ? 4.4 : 5.0));
  }
  run.result(set_name + ": refused by the built-in decoder", static_cast<double>(refused), "images", bench::at_most(0));
}

/// M as progressive files, alternating with M itself.
void measure_progressive(bench::harness& run) {
  auto tasks = make_tasks(bench::make_photo_set(bench::photo_sets[0]), run.quick() ? 256 : 1'024);
  const auto baseline = tasks;
  std::vector<std::vector<std::byte>> files;
  double bytes = 0;
  for (auto& t : tasks) {
    const auto& file = files.emplace_back(bench::progressive_file(t.file));
    t.file = mr::bytes::borrowed(std::span(file));
    t.request.bytes = t.file;
    bytes += static_cast<double>(file.size());
  }
  mr::detail::progressive_decoder own, portable(mr::detail::progressive_decoder::code::portable);
  bench::turbo libjpeg;
  cold_rows ring;
  mr::scratch memory;
  std::size_t refused = 0;
  const auto rendered = [&](const std::vector<crop_task>& of, const mr::jpeg_options& options) {
    return [&, options](std::size_t begin, std::size_t end) {
      render_all(std::span(of).subspan(begin, end - begin), bench::group_size, options, mr::resize_filter::bilinear,
                 ring, memory);
    };
  };
  const auto planes = [&](mr::detail::progressive_decoder& decoder) {
    return [&](std::size_t i, std::size_t end) {
      for (; i < end; ++i) refused += !decoder.decode(tasks[i].request);
    };
  };
  variant variants[] = {
      {"libjpeg-turbo, the region to RGBX",
       [&](std::size_t i, std::size_t end) {
         for (; i < end; ++i) libjpeg.region(tasks[i].request);
       }},
      {"own", planes(own)},
      {"own, portable code", planes(portable)},
      {"rendered, libjpeg-turbo's region", rendered(tasks, {.decoder = mr::picture_decoder::libjpeg})},
      {"rendered, as a batch does", rendered(tasks, {})},
      {"baseline, rendered as a batch does", rendered(baseline, {})}};
  take_turns(variants, tasks.size(), run.quick() ? 5 : 10);
  std::printf("P: %zu images of %.1f KB; us per image, least and median of rounds\n", tasks.size(),
              bytes / static_cast<double>(tasks.size()) / 1e3);
  for (const auto& v : variants) {
    std::printf("  %-36s %7.1f   %s\n", v.name, v.least_us, bench::spread(v.us, "%.1f").c_str());
    run.result(std::string("P: ") + v.name, v.least_us, "us");
  }
  const auto ratio = [&](std::size_t of, std::size_t to) { return variants[of].least_us / variants[to].least_us; };
  run.result("P: own, times libjpeg-turbo's region", ratio(0, 1), "x");
  run.result("P: rendered as a batch does, times libjpeg-turbo's region alone", ratio(0, 4), "x", bench::at_least(2.2));
  run.result("P: rendered as a batch does, times the same by libjpeg-turbo", ratio(3, 4), "x");
  run.result("P: refused by the built-in decoder", static_cast<double>(refused), "images", bench::at_most(0));
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "decode");
  return bench::run_guarded([&] {
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure(run, recipe);
    if (run.wants("P")) measure_progressive(run);
    if (run.wants(bench::large_photo_set.name)) measure(run, bench::large_photo_set);
    return run.finish();
  });
}
