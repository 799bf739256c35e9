// Prints the digest of a stream of batches: keys, labels, pixels and their normalized numbers. First it verifies that
// the digest is the same for every number of workers, prefetch depth, number of I/O threads, device and 20 seeds of
// random delays in the stages, some of them with workers that are opened and closed meanwhile.
// tests/run.sh builds it with several compilers and flags and compares their outputs.
#include "../../copying_device.hpp"
#include "../../temporary_folder.hpp"
#include "../tune/restless_concurrency.hpp"

#include <millrace/base/digest.hpp>
#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  mr::normalized_picture<float> numbers;
  std::int32_t label;
  std::uint64_t key;
};

/// Shards of small images, the same bytes on every machine with the same libjpeg.
void write_pictures(const std::string& folder) {
  mr::shard_writer shards({.pattern = folder + "/digest-%d.tar", .max_samples = 37});
  using mr::chroma_sampling;
  const chroma_sampling samplings[] = {chroma_sampling::yuv444, chroma_sampling::yuv422, chroma_sampling::yuv420};
  for (std::uint64_t i = 0; i < 150; ++i) {
    mr::rng random({.seed = 99, .sample = i});
    mr::image picture({48 + random.below(40), 48 + random.below(40), 3});
    const std::uint64_t phase = random.below(64);
    for (std::size_t y = 0; y < picture.shape()[0]; ++y)
      for (std::size_t x = 0; x < picture.shape()[1]; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          picture(y, x, c) = static_cast<std::uint8_t>((x * (c + 2) + y * 3 + phase + random.below(24)) % 256);
    const auto jpg = mr::encode_jpeg(picture, {.quality = 85, .sampling = samplings[i % 3]});
    shards.write("sample/" + std::to_string(i), {{"jpg", jpg}, {"cls", std::to_string(i % 10)}});
  }
  shards.close();
}

struct variation {
  int threads = 0;
  unsigned io_threads = 1;
  std::size_t depth = 2;
  bool copying = false;
  std::uint64_t delay_seed = 0;   // 0: none
  bool restless = false;          // workers are opened and closed all the time
};

std::uint64_t digest_of(const std::string& pattern, const variation& v) {
  const auto delay = [&v](std::uint64_t sample) {
    if (v.delay_seed == 0) return;
    mr::rng random({.seed = v.delay_seed, .sample = sample});
    if (random.chance(0.1)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(1'500)));
  };
  const auto prepare = [&delay](const mr::record& r, mr::rng& random) {
    const std::uint64_t key = mr::detail::digest_bytes(std::as_bytes(std::span(r.key())));
    delay(key);
    mr::photometric_plan colors;   // with floating point: hues, warps and weights of blurs
    colors.color_jitter({.brightness = 0.4, .saturation = 0.4, .hue = 0.2}, random)
        .trivial_augment({.width = 32, .height = 32}, random)
        .random_pillow_blur({.probability = 0.3}, random);
    const mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(32, random).random_flip(random).apply(colors);
    return example{p, {p, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}},
                   r["cls"].as<std::int32_t>(), key};
  };
  auto flow = mr::shards(pattern, {.seed = 7, .index = mr::index::off}) | mr::shuffle({.window = 60}) |
              mr::map(prepare) |
              mr::batch<&example::pixels, &example::numbers, &example::label, &example::key>(
                  {.size = 16, .drop_last = false}) |
              mr::prefetch({.batches = v.depth}) |
              mr::to_device({.device = v.copying ? copying_device() : mr::host_device()});
  // Not in the braces below, where g++ 12 assumes that an exception could leave members uninitialized.
  const std::shared_ptr<const mr::tuning_rule> rule =
      v.restless ? std::make_shared<restless_concurrency>(v.delay_seed) : nullptr;
  mr::detail::stream_digest digest;
  mr::feed(std::move(flow),
           {.epochs = 2, .threads = v.threads, .io_threads = v.io_threads, .notice = mr::quiet,
            .tuning = rule},
           [&](auto& b) {
             auto [pixels, numbers, labels, keys] = b.columns();
             digest.add(b.step(), mr::detail::digest_bytes(std::as_bytes(pixels.host())));
             digest.add(b.step(), mr::detail::digest_bytes(std::as_bytes(numbers.host())));
             digest.add(b.step(), mr::detail::digest_bytes(std::as_bytes(labels.host())));
             digest.add(b.step(), mr::detail::digest_bytes(std::as_bytes(keys.host())));
           });
  return digest.value();
}

int compare_all(const std::string& pattern) {
  const std::uint64_t expected = digest_of(pattern, {});
  int different = 0;
  const auto check = [&](const variation& v) {
    const std::uint64_t got = digest_of(pattern, v);
    if (got == expected) return;
    ++different;
    std::printf("another digest with %d workers, %u I/O threads, depth %zu, %s device, delays %llu%s\n", v.threads,
                v.io_threads, v.depth, v.copying ? "copying" : "host", static_cast<unsigned long long>(v.delay_seed),
                v.restless ? ", restless workers" : "");
  };
  for (const int threads : {0, 1, 2, 3, 4, 8})
    for (const std::size_t depth : {1U, 2U, 5U}) check({.threads = threads, .io_threads = 2, .depth = depth});
  for (const int threads : {0, 2}) check({.threads = threads, .copying = true});
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    check({.threads = static_cast<int>(1 + seed % 4),
           .io_threads = static_cast<unsigned>(1 + seed % 3),
           .depth = 1 + seed % 3,
           .copying = seed % 5 == 0,
           .delay_seed = seed,
           .restless = seed % 4 == 0});
  if (different == 0) std::printf("digest %016llx\n", static_cast<unsigned long long>(expected));
  return different == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  const temporary_folder folder;
  try {
    write_pictures(folder.path());
    return compare_all(folder / "digest-{0..4}.tar");
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return EXIT_FAILURE;
  }
}
