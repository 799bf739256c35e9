// A program that runs one stage of the library while calls fail, as faults.py and shim.cpp specify.
//
//   subject data FOLDER                     # creates the input of the stages
//   subject list                            # lists the stages and the scenarios
//   subject run STAGE FOLDER OUT            # with faults, then again without faults in the same process
//
// It prints a line `row DIGEST` for each batch or record, `end ok` or `end KIND TEXT`, the result of the second run,
// and the numbers of remaining descriptors and threads of the library.
#include "../../unit/audio/wav_files.hpp"
#include "subject.hpp"

#include <millrace/base/error.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/image/png/png_encoder.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>
#include <thread>

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

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Threads of the library that still run after some time.
int threads_left() {
  int left = 0;
  for (int i = 0; i < 12'000 && (left = faults_threads ? faults_threads() : 0) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return left;
}

struct result {
  std::string end{};
  delivered to{};
};

/// Returns the kind of the current exception.
std::string described() {
  try {
    throw;
  } catch (const mr::setup_error& e) {
    return std::string("setup_error ") + e.what();
  } catch (const mr::data_error& e) {
    return std::string("data_error ") + e.what();
  } catch (const mr::io_error& e) {
    return std::string("io_error ") + e.what();
  } catch (const mr::stage_error& e) {
    return std::string("stage_error ") + e.what();
  } catch (const mr::conservation_error& e) {
    return std::string("conservation_error ") + e.what();
  } catch (const std::bad_alloc& e) {
    return std::string("bad_alloc ") + e.what();
  } catch (const std::system_error& e) {
    return std::string("system_error ") + e.what();
  } catch (const std::exception& e) {
    return std::string("exception ") + e.what();
  } catch (...) {
    return "unknown ?";
  }
}

void run(const stage& what, const places& at, result& r, bool faulty) {
  if (faulty && faults_arm) faults_arm();
  try {
    what.run(at, r.to);
    if (faults_disarm) faults_disarm();
    r.end = "ok";
  } catch (...) {
    if (faults_disarm) faults_disarm();
    r.end = described();
  }
}

int run_twice(const std::string& name, const places& at) {
  for (const auto all : {flow_stages(), text_stages(), file_stages(), scenarios()})
    for (const stage& s : all) {
      if (name != s.name) continue;
      std::filesystem::create_directories(at.out + "/armed");
      std::filesystem::create_directories(at.out + "/again");
      result armed, again;
      const std::size_t before = open_descriptors();
      run(s, {at.data, at.out + "/armed"}, armed, true);
      const int threads = threads_left();
      const std::size_t left_open = open_descriptors() - before;
      run(s, {at.data, at.out + "/again"}, again, false);
      for (const std::uint64_t row : armed.to.rows())
        std::printf("row %016llx\n", static_cast<unsigned long long>(row));
      std::printf("end %s\n", armed.end.c_str());
      if (armed.to.told_lost > 0) std::printf("lost %llu\n", static_cast<unsigned long long>(armed.to.told_lost));
      if (left_open > 0) std::printf("descriptors %zu\n", left_open);
      if (threads > 0) std::printf("threads %d\n", threads);
      std::uint64_t digest = 0;
      for (const std::uint64_t row : again.to.rows()) digest = mr::detail::combine_keys(digest, row);
      std::printf("again %zu %016llx %s\n", again.to.rows().size(), static_cast<unsigned long long>(digest),
                  again.end.c_str());
      return 0;
    }
  std::fprintf(stderr, "subject: there is no stage %s\n", name.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "data" && argc == 3) {
    make_data(argv[2]);
    return 0;
  }
  if (what == "run" && argc == 5) return run_twice(argv[2], {argv[3], argv[4]});
  if (what != "list") return 2;
  for (const auto all : {flow_stages(), text_stages(), file_stages()})
    for (const stage& s : all) std::printf("stage %s\n", s.name);
  for (const stage& s : scenarios()) std::printf("scenario %s\n", s.name);
}
