// colors: the cost of photometric operations on a row of 224 x 224 pixels that has just been rendered; CPU us per row
//
//   sh bench/run.sh colors [--quick] [--only operations|recipes]
//
// A row is copied to the same memory before each measurement, so that it is in L2, as after a resize. All variants
// alternate, row by row. Operations report the median of the rows, with quartiles. Recipes are drawn for each row and
// report the mean, because their draws differ more than their times.
#include "harness.hpp"

#include <millrace/image/augment/photometric_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

namespace mr = millrace;
using mr::photometric_plan;

constexpr std::size_t side = 224, image_count = 16;
constexpr mr::picture_size size{.width = side, .height = side};
using row = std::vector<std::uint8_t>;

/// Waves of several lengths with noise: neighboring pixels are similar, as in photographs.
row test_row(std::uint64_t number) {
  mr::rng random({.seed = 3, .sample = number});
  double phase[3][3], length[3];
  for (auto& channel : phase)
    for (double& p : channel) p = random.uniform(0, 6.28);
  for (double& l : length) l = random.uniform(5, 120);
  row pixels(side * side * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto x = static_cast<double>(i / 3 % side), y = static_cast<double>(i / 3 / side);
    double value = 120 + random.uniform(-8, 8);
    for (std::size_t k = 0; k < 3; ++k)
      value += 35 * std::sin((k == 1 ? y : k == 2 ? x + y : x) / length[k] + phase[i % 3][k]);
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
  }
  return pixels;
}

struct variant {
  const char* name;
  void (*plan)(photometric_plan&, mr::rng&);
  bench::goal target{};
};

const mr::warp_options bilinear{.filter = mr::interpolation::bilinear}, bicubic{.filter = mr::interpolation::bicubic};
constexpr auto timm = mr::augment_numbers::timm;

const variant operations[] = {
    {"brightness", [](photometric_plan& p, mr::rng&) { p.brightness(1.3); }},
    {"contrast", [](photometric_plan& p, mr::rng&) { p.contrast(1.3); }},
    {"saturation", [](photometric_plan& p, mr::rng&) { p.saturation(1.3); }},
    {"hue", [](photometric_plan& p, mr::rng&) { p.hue(0.07); }},
    {"sharpness", [](photometric_plan& p, mr::rng&) { p.sharpness(1.3); }},
    {"grayscale", [](photometric_plan& p, mr::rng&) { p.grayscale(); }},
    {"invert", [](photometric_plan& p, mr::rng&) { p.invert(); }},
    {"posterize", [](photometric_plan& p, mr::rng&) { p.posterize(4); }},
    {"solarize", [](photometric_plan& p, mr::rng&) { p.solarize(128); }},
    {"autocontrast", [](photometric_plan& p, mr::rng&) { p.autocontrast(); }},
    {"equalize", [](photometric_plan& p, mr::rng&) { p.equalize(); }},
    {"five_tables",
     [](photometric_plan& p, mr::rng&) { p.brightness(1.2).solarize(99).posterize(5).invert().solarize(); }},
    {"gaussian_blur_9", [](photometric_plan& p, mr::rng&) { p.gaussian_blur(9, 1.2); }, bench::at_most(100)},
    {"gaussian_blur_23", [](photometric_plan& p, mr::rng&) { p.gaussian_blur(23, 1.2); }},
    {"pillow_blur", [](photometric_plan& p, mr::rng&) { p.pillow_blur(1.2); }},
    {"rotate_nearest", [](photometric_plan& p, mr::rng&) { p.rotate(9); }},
    {"rotate_bilinear", [](photometric_plan& p, mr::rng&) { p.rotate(9, bilinear); }},
    {"rotate_bicubic", [](photometric_plan& p, mr::rng&) { p.rotate(9, bicubic); }},
    {"shear_x_nearest", [](photometric_plan& p, mr::rng&) { p.shear_x(0.09); }},
    {"shear_y_nearest", [](photometric_plan& p, mr::rng&) { p.shear_y(0.09); }},
    {"shear_x_bicubic", [](photometric_plan& p, mr::rng&) { p.shear_x(0.27, bicubic); }},
    {"shear_y_bicubic", [](photometric_plan& p, mr::rng&) { p.shear_y(0.27, bicubic); }},
    {"translate_bilinear", [](photometric_plan& p, mr::rng&) { p.translate(29.543, 0, bilinear); }},
    {"translate_bicubic", [](photometric_plan& p, mr::rng&) { p.translate(0, 29.543, bicubic); }},
    {"translate_nearest", [](photometric_plan& p, mr::rng&) { p.translate(30, 0); }},
    {"erase", [](photometric_plan& p, mr::rng&) { p.erase({.left = 50, .top = 60, .width = 90, .height = 90}); }},
};

const variant recipes[] = {
    {"color_jitter",
     [](photometric_plan& p, mr::rng& r) {
       p.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, r);
     },
     bench::at_most(150)},
    {"color_jitter_without_hue",
     [](photometric_plan& p, mr::rng& r) {
       p.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4}, r);
     },
     bench::at_most(40)},
    {"rand_augment", [](photometric_plan& p, mr::rng& r) { p.rand_augment(size, r); }, bench::at_most(100)},
    {"rand_augment_timm", [](photometric_plan& p, mr::rng& r) { p.rand_augment(size, r, {.numbers = timm}); },
     bench::at_most(100)},
    {"trivial_augment", [](photometric_plan& p, mr::rng& r) { p.trivial_augment(size, r); }},
    {"auto_augment", [](photometric_plan& p, mr::rng& r) { p.auto_augment(size, r); }},
    {"aug_mix", [](photometric_plan& p, mr::rng& r) { p.aug_mix(size, r); }},
    {"random_erasing", [](photometric_plan& p, mr::rng& r) { p.random_erasing(size, r); }},
};

double thread_us() { return 1e6 * bench::seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double clock_cost() {
  const double before = thread_us();
  for (int i = 0; i < 1'000; ++i) thread_us();
  return (thread_us() - before) / 1'001;
}

photometric_plan plan_of(const variant& v, std::uint64_t sample) {
  mr::rng random({.seed = 4, .sample = sample});
  photometric_plan plan;
  v.plan(plan, random);
  return plan;
}

template <std::size_t count>
void measure(bench::harness& run, const variant (&variants)[count], std::size_t rows, bool mean) {
  std::vector<row> sources;
  for (std::uint64_t i = 0; i < image_count; ++i) sources.push_back(test_row(i));
  row work(side * side * 3);
  mr::scratch s;
  const double clock = clock_cost();
  std::vector<std::vector<double>> times(count);
  for (std::size_t i = 0; i < rows + image_count; ++i)
    for (std::size_t v = 0; v < count; ++v) {
      const photometric_plan plan = plan_of(variants[v], i);
      work = sources[i % image_count];
      const double before = thread_us();
      plan.run(work, side, side, s);
      const double after = thread_us();
      if (i >= image_count) times[v].push_back(after - before - clock);   // the first ones allocate memory
    }
  for (std::size_t v = 0; v < count; ++v) {
    double sum = 0;
    for (const double time : times[v]) sum += time;
    const double before = thread_us();
    for (std::uint64_t i = 0; i < rows; ++i) plan_of(variants[v], i);
    std::printf("%s: median %.1f us (quartiles %.1f .. %.1f), mean %.1f; plan construction %.2f\n", variants[v].name,
                bench::median(times[v]), bench::quantile(times[v], 0.25), bench::quantile(times[v], 0.75),
                sum / static_cast<double>(rows), (thread_us() - before) / static_cast<double>(rows));
    run.result(std::string("colors_") + variants[v].name,
               mean ? sum / static_cast<double>(rows) : bench::median(times[v]), "us", variants[v].target);
  }
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "colors");
    const std::size_t rows = run.quick() ? 400 : 4'000;
    if (run.wants("operations")) measure(run, operations, rows, false);
    if (run.wants("recipes")) measure(run, recipes, rows, true);
    return run.finish();
  });
}
