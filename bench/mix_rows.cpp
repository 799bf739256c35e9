// mix_rows: mixup and cutmix of pairs of rows, in the cache and in a flow of images, compared with a flow without them
//
// A pair is two rows of 224 x 224 x 3 in the cache, as for a worker that has just rendered both. The flow decodes and
// crops one synthetic photograph without workers, so that the CPU time is that of the samples.
#include "harness.hpp"

#include <millrace/base/random.hpp>
#include <millrace/device/mix_rows.hpp>
#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 224, elements = side * side * 3;

struct example {
  mr::picture pixels;
  std::int32_t label;
};

/// A photograph of 500 x 375: slopes, edges and some noise.
std::vector<std::byte> drawn_jpeg() {
  mr::image pixels({375, 500, 3});
  mr::rng random({.seed = 1});
  const auto all = pixels.span();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t x = i / 3 % 500, y = i / 1'500;
    all[i] = static_cast<std::uint8_t>(x * y / 97 + x / 3 + random.below(24));
  }
  return mr::encode_jpeg(pixels, {.quality = 85});
}

template <class T>
double microseconds_a_pair(const mr::row_mix& how, int repeats) {
  std::vector<T> first(elements), second(elements);
  mr::rng random({.seed = 2});
  for (auto* const row : {&first, &second})
    for (T& v : *row) {
      if constexpr (std::is_same_v<T, std::uint8_t>) v = static_cast<T>(random.below(256));
      else v = mr::detail::half_element<T>(static_cast<float>(random.uniform(-2, 2)));
    }
  const mr::detail::row_grid grid{.height = side, .width = side, .channels = 3};
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < repeats; ++i) mr::detail::mix_pixels(first.data(), second.data(), grid, how);
  return (bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before) * 1e6 / repeats;
}

template <class T>
void measure_pairs(bench::harness& run, const char* type, const bench::goal& target) {
  const mr::row_mix mixup{.partner = 1, .weight = 45'874};
  const mr::row_mix cutmix{.partner = 1, .left = 30, .top = 40, .right = 190, .bottom = 200};
  std::vector<double> by_mixup, by_cutmix;
  for (int round = -1; round < (run.quick() ? 9 : 31); ++round) {   // round -1 is a warm-up
    const double a = microseconds_a_pair<T>(mixup, 50), b = microseconds_a_pair<T>(cutmix, 50);
    if (round < 0) continue;
    by_mixup.push_back(a);
    by_cutmix.push_back(b);
  }
  std::printf("  %-5s mixup %s us, cutmix of 160 x 160 %s us\n", type, bench::spread(by_mixup).c_str(),
              bench::spread(by_cutmix).c_str());
  run.result(std::string("mixup_pair_") + type, bench::median(by_mixup), "us", target);
  run.result(std::string("cutmix_pair_") + type, bench::median(by_cutmix), "us", target);
}

template <class Flow>
double microseconds_a_picture(Flow flow) {
  mr::session run{std::move(flow), {.threads = 0, .notice = mr::quiet}};
  run.next();
  const double before = bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  std::size_t rows = 0;
  while (const auto b = run.next()) rows += b.size();
  return (bench::seconds_of(CLOCK_PROCESS_CPUTIME_ID) - before) * 1e6 / static_cast<double>(rows);
}

void measure_flows(bench::harness& run) {
  const std::vector<std::byte> file = drawn_jpeg();
  const mr::bytes data = mr::bytes::borrowed(file);
  std::vector<int> numbers(run.quick() ? 640 : 1'600);
  const auto batches = [&] {
    return mr::from(numbers, {.seed = 3}) | mr::map([&data](int n, mr::rng& random) {
             return example{mr::jpeg(data).random_resized_crop(side, random).random_flip(random), n};
           }) |
           mr::batch<&example::pixels, &example::label>({.size = 64});
  };
  std::vector<double> plain, by_mixup, by_cutmix, more;
  for (int round = -1; round < (run.quick() ? 5 : 15); ++round) {
    const double a = microseconds_a_picture(batches());
    const double b = microseconds_a_picture(batches() | mr::mixup<&example::pixels, &example::label>());
    const double c = microseconds_a_picture(batches() | mr::cutmix<&example::pixels, &example::label>());
    if (round < 0) continue;
    plain.push_back(a);
    by_mixup.push_back(b);
    by_cutmix.push_back(c);
    more.push_back(2 * (b - a));
  }
  std::printf("us of CPU time per image: %s; with mixup %s, with cutmix %s\n", bench::spread(plain).c_str(),
              bench::spread(by_mixup).c_str(), bench::spread(by_cutmix).c_str());
  run.result("mixup_flow_pair", bench::median(more), "us", bench::at_most(46));
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "mix_rows");
    if (run.wants("pairs")) {
      std::printf("\ntwo rows of 224 x 224 x 3 in the cache, median of rounds:\n");
      measure_pairs<std::uint8_t>(run, "u8", bench::at_most(46));
      measure_pairs<mr::f16>(run, "f16", {});
      measure_pairs<mr::bf16>(run, "bf16", {});
      measure_pairs<float>(run, "f32", {});
    }
    if (run.wants("flows")) measure_flows(run);
    return run.finish();
  });
}
