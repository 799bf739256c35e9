// Reads, crops, recolors and normalizes JPEGs for main.cpp. Floating point decides pixels here.
#include "loader.hpp"

#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

#include <cstdio>
#include <exception>
#include <string>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  mr::normalized_picture<float> numbers;
  std::int32_t label;
};

example prepare(const mr::record& r, mr::rng& random) {
  mr::photometric_plan colors;
  colors.color_jitter({.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}, random);
  const mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(side, random).random_flip(random).apply(colors);
  return {p, {p, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}}, r["cls"].as<std::int32_t>()};
}

auto flow_of(const char* shards) {
  return mr::shards(shards, {.seed = 7}) | mr::shuffle({.window = 64}) | mr::map(prepare) |
         mr::batch<&example::pixels, &example::numbers, &example::label>({.size = 16, .drop_last = false});
}

class loader final : public loader_interface {
 public:
  loader(const char* shards, int workers)
      : run_(flow_of(shards), {.epochs = 2, .threads = workers, .notice = mr::quiet}) {}

  bool next(rows& to) override {
    batch_ = {};
    batch_ = run_.next();
    if (!batch_) return false;
    auto [pixels, numbers, labels] = batch_.columns();
    to = {pixels.data, numbers.data, labels.data, batch_.size()};
    return true;
  }

 private:
  using session = decltype(mr::session(flow_of("")));
  session run_;
  session::batch batch_{};
};

}  // namespace

#ifdef WRITES
void write_shards(const char* folder) {
  mr::shard_writer shards({.pattern = std::string(folder) + "/%d.tar", .max_samples = 80});
  using mr::chroma_sampling;
  const chroma_sampling samplings[] = {chroma_sampling::yuv444, chroma_sampling::yuv422, chroma_sampling::yuv420};
  for (std::uint64_t i = 0; i < 160; ++i) {
    mr::rng random({.seed = 99, .sample = i});
    mr::image picture({60 + random.below(70), 60 + random.below(70), 3});
    for (std::size_t y = 0; y < picture.shape()[0]; ++y)
      for (std::size_t x = 0; x < picture.shape()[1]; ++x)
        for (std::size_t c = 0; c < 3; ++c)
          picture(y, x, c) = static_cast<std::uint8_t>((x * (c + 2) + y * 3 + random.below(24)) % 256);
    const auto jpg = mr::encode_jpeg(picture, {.quality = 85, .sampling = samplings[i % 3]});
    shards.write(std::to_string(i), {{"jpg", jpg}, {"cls", std::to_string(i % 10)}});
  }
  shards.close();
}
#endif

loader_interface* LOADER(const char* shards, int workers) {
  try {
    return new loader(shards, workers);
  } catch (const std::exception& why) {
    std::printf("%s\n", why.what());
    return nullptr;
  }
}
