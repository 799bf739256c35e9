// resize: cost of rendering a decoded image to a row of a batch: crop, resize to 224, flip, colors; CPU us per image
//
//   sh bench/run.sh resize [--quick] [--only M]
//
// Planes and RGBX pixels are decoded in advance and are in the second-level cache when they are read, as after a
// decoder. Variants alternate, image by image. A result is the least of the rounds' means, because other programs on
// the machine only add time. "cold" rows are in a ring of 64 MiB, the others always in the same memory.
#include "harness.hpp"
#include "parts/resize_loops.hpp"
#include "photo_sets.hpp"

#include "../tests/unit/image/resize/resize_cases.hpp"

#include <millrace/io/file/byte_source.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

namespace mr = millrace;
using bench::resize_way;

constexpr std::size_t side = 224;

struct variant {
  resize_way way;
  const char* name;
};
constexpr variant variants[] = {
    {resize_way::exact_rows, "exact_rows_u8"},      {resize_way::exact_u8, "exact_u8"},
    {resize_way::exact_u8_cold, "exact_u8_cold"},   {resize_way::exact_f32, "exact_f32"},
    {resize_way::exact_f32_cold, "exact_f32_cold"}, {resize_way::exact_f16, "exact_f16"},
    {resize_way::exact_bf16, "exact_bf16"},         {resize_way::fast_u8, "fast_u8"},
    {resize_way::fast_u8_cold, "fast_u8_cold"},
};
constexpr std::size_t variant_count = std::size(variants);

bool is_cold(resize_way way) {
  return way == resize_way::exact_u8_cold || way == resize_way::exact_f32_cold || way == resize_way::fast_u8_cold;
}

struct source {
  std::unique_ptr<slow::stored_planes> stored;
  mr::image pixels;   // RGBX
  std::size_t width, height;
};

void add_image(std::vector<source>& sources, std::span<const std::byte> file) {
  auto stored = std::make_unique<slow::stored_planes>(file);
  const auto& planes = stored->full();
  const bool is_supported = planes.components == 3 && planes.horizontal_sampling == planes.vertical_sampling;
  if (!is_supported) return;
  const auto width = static_cast<std::size_t>(planes.image_width),
             height = static_cast<std::size_t>(planes.image_height);
  sources.push_back({std::move(stored), slow::decode(file, JCS_EXT_RGBX), width, height});
}

std::vector<source> images_of(const bench::photo_set_recipe& recipe, std::size_t most) {
  const auto set = bench::make_photo_set(recipe);
  std::vector<source> sources;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader shard(std::make_unique<mr::file_source>(name), pool);
    while (sources.size() < most) {
      const auto record = shard.next();
      if (!record) break;
      add_image(sources, (*record)["jpg"]);
    }
  }
  return sources;
}

/// The photographs themselves, which are reduced by factors of up to ten.
std::vector<source> large_images(std::size_t most) {
  std::vector<source> sources;
  for (const auto& p : bench::detail::find_photos(bench::data_folder() + "/photos"))
    if (sources.size() < most && p.width * p.height < 6'000'000) add_image(sources, bench::detail::read_bytes(p.path));
  return sources;
}

double thread_seconds() { return bench::seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double clock_cost() {
  const double before = thread_seconds();
  for (int i = 0; i < 1'000; ++i) thread_seconds();
  return (thread_seconds() - before) / 1'001;
}

void measure(bench::harness& run, const char* name, const std::vector<source>& sources, int rounds) {
  std::vector<const bench::resize_loops*> loops{&bench::main_loops};
#ifdef MILLRACE_BENCH_OTHER_COMPILER
  loops.push_back(&bench::other_loops);
#endif
  std::vector<std::unique_ptr<bench::resize_build>> builds;
  for (const auto* l : loops) builds.push_back(l->make());
  const std::size_t measured = builds.size() * variant_count;
  constexpr std::size_t ring_rows = 112, row_bytes = side * side * 3 * 4;
  const std::unique_ptr<void, void (*)(void*)> ring(std::aligned_alloc(64, ring_rows * row_bytes), std::free);
  std::memset(ring.get(), 1, ring_rows * row_bytes);
  const double clock = clock_cost();
  std::vector<double> best(measured, 1e9), pixels;
  std::size_t turn = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> sum(measured, 0.0);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const source& s = sources[i];
      mr::rng random({.seed = 5, .sample = i});
      const auto box = mr::detail::random_crop_box({.width = s.width, .height = s.height}, random, {});
      if (round == 0) pixels.push_back(static_cast<double>(box.width * box.height));
      const auto planes = s.stored->region({.width = s.width, .height = s.height});
      bench::resize_call call{.plane = {},
                              .plane_width = {},
                              .plane_height = {},
                              .sampling = planes.horizontal_sampling,
                              .pixels = s.pixels.data(),
                              .width = s.width,
                              .height = s.height,
                              .left = box.left,
                              .top = box.top,
                              .box_width = box.width,
                              .box_height = box.height,
                              .flipped = i % 2 == 1,
                              .side = side,
                              .out = nullptr};
      for (std::size_t k = 0; k < 3; ++k) {
        call.plane[k] = planes.component[k].data;
        call.plane_width[k] = planes.component[k].stride_bytes;
        call.plane_height[k] = static_cast<std::size_t>(planes.component[k].height);
      }
      for (std::size_t v = 0; v < measured; ++v) {
        const std::size_t which = (v + i) % measured;
        const variant& current = variants[which % variant_count];
        const std::size_t place = is_cold(current.way) ? ++turn % ring_rows : 0;
        call.out = static_cast<std::byte*>(ring.get()) + place * row_bytes;
        const double before = thread_seconds();
        builds[which / variant_count]->run(current.way, call);
        sum[which] += thread_seconds() - before - clock;
      }
    }
    for (std::size_t v = 0; v < measured; ++v)
      best[v] = std::min(best[v], 1e6 * sum[v] / static_cast<double>(sources.size()));
  }
  std::printf("\n%s: %zu images, median crop %.0f pixels; us per image, least of %d rounds\n", name, sources.size(),
              bench::median(pixels), rounds);
  for (std::size_t b = 0; b < builds.size(); ++b)
    for (std::size_t v = 0; v < variant_count; ++v)
      run.result(std::string("resize_") + name + "_" + variants[v].name + "_" + loops[b]->compiler,
                 best[b * variant_count + v], "us");
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "resize");
    const std::size_t most = run.quick() ? 128 : 512;
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure(run, recipe.name, images_of(recipe, most), run.quick() ? 5 : 9);
    if (run.wants("large")) measure(run, "large", large_images(run.quick() ? 12 : 24), run.quick() ? 3 : 5);
    return run.finish();
  });
}
