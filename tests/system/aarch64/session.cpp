// A session with threads, an index and resume, whose digest must be the same on every machine:
//
//   session write FOLDER                              # writes shards of JPEGs
//   session run FOLDER                                # indexes them if they have no index; prints a digest
//
// Each run verifies that the digest is the same for several numbers of threads, and for a run that another session
// resumes.
#include <millrace/base/digest.hpp>
#include <millrace/millrace.hpp>
#include <millrace/pictures.hpp>

#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

namespace mr = millrace;

namespace {

struct example {
  mr::picture pixels;
  mr::normalized_picture<mr::f16> numbers;
  std::int32_t label;
  double random_value;
};

void write_shards(const std::string& folder) {
  mr::shard_writer shards({.pattern = folder + "/session-%d.tar", .max_samples = 20});
  for (std::uint64_t i = 0; i < 80; ++i) {
    mr::rng random({.seed = 8, .sample = i});
    mr::image pixels({40 + random.below(60), 40 + random.below(60), 3});
    for (std::size_t k = 0; k < pixels.size(); ++k)
      pixels.data()[k] = static_cast<std::uint8_t>((k / 7 + k / 300 + random.below(32)) % 256);
    const auto file = mr::encode_jpeg(pixels, {.quality = 85, .progressive = i % 8 == 0});
    shards.write("s/" + std::to_string(i), {{"jpg", file}, {"cls", std::to_string(i % 10)}});
  }
  shards.close();
}

example prepare(const mr::record& r, mr::rng& random) {
  mr::photometric_plan colors;
  colors.color_jitter({.brightness = 0.4, .saturation = 0.4, .hue = 0.2}, random)
      .trivial_augment({.width = 48, .height = 48}, random);
  const mr::picture p = mr::jpeg(r["jpg"]).random_resized_crop(48, random).random_flip(random).apply(colors);
  return {p, {p, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}}, r["cls"].as<std::int32_t>(),
          random.uniform()};
}

class digested_run {
 public:
  explicit digested_run(std::string pattern) : pattern_(std::move(pattern)) {}

  /// Adds batches to the digest until the run's end or batch `stop`, and returns the resume text of the last one.
  std::string read(int threads, const std::string& resume = {}, std::uint64_t stop = ~std::uint64_t{}) {
    mr::session session{mr::shards(pattern_, {.seed = 5, .index = mr::index::required}) |
                            mr::shuffle({.window = 40}) | mr::map(prepare) |
                            mr::batch<&example::pixels, &example::numbers, &example::label, &example::random_value>(
                                {.size = 8, .drop_last = false}),
                        {.epochs = 2, .threads = threads, .io_threads = 2, .notice = mr::quiet, .resume = resume}};
    std::string text;
    for (auto& b : session) {
      const auto [pixels, numbers, labels, values] = b.columns();
      const auto add = [&](const auto& column) {
        digest_.add(b.step(), mr::detail::digest_bytes(std::as_bytes(column.host())));
      };
      add(pixels), add(numbers), add(labels), add(values);
      text = b.resume_text();
      if (b.step() == stop) break;
    }
    return text;
  }

  std::uint64_t value() const { return digest_.value(); }

 private:
  std::string pattern_;
  mr::detail::stream_digest digest_;
};

int compare(const std::string& pattern) {
  digested_run one_thread(pattern), three_threads(pattern), resumed(pattern);
  one_thread.read(1);
  three_threads.read(3);
  const std::string text = resumed.read(2, {}, 6);
  resumed.read(2, text);
  std::printf("digest %016" PRIx64 "\nresume %s\n", one_thread.value(), text.c_str());
  const bool same = three_threads.value() == one_thread.value() && resumed.value() == one_thread.value();
  if (!same) std::printf("three threads: %016" PRIx64 ", resumed: %016" PRIx64 "\n", three_threads.value(),
                         resumed.value());
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    if (std::string_view(argv[1]) == "run") return compare(argv[2] + std::string("/session-{0..3}.tar"));
    write_shards(argv[2]);
    return 0;
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
