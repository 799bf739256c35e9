// The input of the stages: small, of every kind, and deterministic.
#include "subject.hpp"

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace mr = millrace;

namespace {

void must(bool good, const char* what) {
  if (!good) throw mr::io_error(std::string("creating the data failed: ") + what, "Check the disk");
}

std::string text_of(mr::rng& random, std::size_t bytes) {
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + random.below(26));
  return text;
}

void write_samples(const std::string& folder) {
  mr::rng random({.seed = 1});
  mr::shard_writer shards({.pattern = folder + "/s-%d.tar", .max_samples = 12});
  for (int i = 0; i < 48; ++i)
    shards.write("k" + std::to_string(i),
                 {{"txt", text_of(random, i == 20 ? 700'000 : 100 + random.below(3'000))}, {"cls", std::to_string(i)}});
  shards.close();
}

void write_pictures(const std::string& folder) {
  mr::rng random({.seed = 2});
  mr::shard_writer shards({.pattern = folder + "/p-%d.tar", .max_samples = 8});
  for (int i = 0; i < 16; ++i) {
    mr::image pixels({24, 32, 3});
    for (std::size_t j = 0; j < pixels.size(); ++j)
      pixels.data()[j] = static_cast<std::uint8_t>(j / 5 + random.below(40));
    const auto file = mr::encode_jpeg(pixels, {.progressive = i % 5 == 0});
    shards.write("p" + std::to_string(i), {{"jpg", file}, {"cls", std::to_string(i)}});
  }
  shards.close();
}

void write_lines(const std::string& folder) {
  mr::rng random({.seed = 3});
  for (int f = 0; f < 3; ++f) {
    std::ofstream file(folder + "/" + std::to_string(f) + ".txt");
    for (int i = 0; i < 40; ++i) file << f * 1'000 + i << ' ' << text_of(random, random.below(60)) << '\n';
  }
  must(std::system(("gzip " + folder + "/1.txt").c_str()) == 0, "gzip");
}

void write_tokens(const std::string& folder) {
  for (int f = 0; f < 3; ++f) {
    std::ofstream file(folder + "/" + std::to_string(f) + ".u16", std::ios::binary);
    for (int i = 0; i < 5'000; ++i) {
      const auto token = static_cast<std::uint16_t>(f * 7'000 + i);
      file.write(reinterpret_cast<const char*>(&token), 2);
    }
  }
}

}  // namespace

void make_data(const std::string& folder) {
  for (const char* kind : {"tar", "gz", "jpg", "text", "tokens", "known"})
    std::filesystem::create_directories(folder + "/" + kind);
  write_samples(folder + "/tar");
  write_samples(folder + "/gz");
  must(std::system(("gzip " + folder + "/gz/*.tar").c_str()) == 0, "gzip");
  write_samples(folder + "/known");
  const auto indexed = mr::list_shards(folder + "/known/*.tar");
  mr::detail::build_indexes(indexed);
  write_pictures(folder + "/jpg");
  write_lines(folder + "/text");
  write_tokens(folder + "/tokens");
}
