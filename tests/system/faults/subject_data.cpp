// The input of the stages: small, of every kind, and deterministic.
#include "../../unit/audio/wav_files.hpp"
#include "subject.hpp"

#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/png/png_encoder.hpp>
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

/// Samples of 1 to 3 images and a sound.
void write_media(const std::string& folder) {
  mr::rng random({.seed = 4});
  mr::shard_writer shards({.pattern = folder + "/m-%d.tar", .max_samples = 8});
  for (int i = 0; i < 24; ++i) {
    std::vector<std::vector<std::byte>> images;
    for (int k = 0; k <= i % 3; ++k) {
      mr::image pixels({16, static_cast<std::size_t>(20 + k), 3});
      for (std::size_t j = 0; j < pixels.size(); ++j)
        pixels.data()[j] = static_cast<std::uint8_t>(j / 3 + random.below(30));
      images.push_back(k == 1 ? mr::encode_png(pixels) : mr::encode_jpeg(pixels));
    }
    const slow::wav_form form{.coding = slow::all_codings[i % 4], .channels = 2};
    const std::string wav = slow::wav_file(form, slow::random_samples(form, 300 + random.below(200), random));
    std::vector<mr::named_bytes> fields{{"wav", wav}};
    static const char* const names[] = {"1.image", "2.image", "3.image"};
    for (std::size_t k = 0; k < images.size(); ++k) fields.push_back({names[k], images[k]});
    shards.write("m" + std::to_string(i), fields);
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

/// Files of Megatron: documents of 1 to 400 tokens of two bytes, in one sequence each.
void write_megatron(const std::string& folder) {
  mr::rng random({.seed = 5});
  const auto number = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  for (int f = 0; f < 3; ++f) {
    std::string tokens, lengths, offsets, bounds = number(std::uint64_t{0});
    constexpr std::uint64_t documents = 20;
    for (std::uint64_t d = 0; d < documents; ++d) {
      const auto length = static_cast<std::int32_t>(random.below(400) + 1);
      lengths += number(length);
      offsets += number(std::uint64_t{tokens.size()});
      bounds += number(d + 1);
      for (std::int32_t i = 0; i < length; ++i) tokens += number(static_cast<std::uint16_t>(random.below(50'000)));
    }
    const std::string name = folder + "/" + std::to_string(f);
    std::ofstream(name + ".bin", std::ios::binary) << tokens;
    std::ofstream(name + ".idx", std::ios::binary)
        << std::string("MMIDIDX\0\0", 9) << number(std::uint64_t{1}) << '\b' << number(documents)
        << number(documents + 1) << lengths << offsets << bounds;
  }
}

}  // namespace

void make_data(const std::string& folder) {
  for (const char* kind : {"tar", "gz", "jpg", "text", "tokens", "megatron", "media", "known"})
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
  write_megatron(folder + "/megatron");
  write_media(folder + "/media");
}
