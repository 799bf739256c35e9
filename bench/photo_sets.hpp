// Data sets of photographs like those of ImageNet, generated once from the large ones that bench/photos.sh fetches.
//
//   const bench::photo_set set = bench::make_photo_set(bench::photo_sets[0]);     // "M"
//   mr::shards(set.names) ...                                                     // set.samples in 8 shards
//
// Each sample is a window of a photograph, at a random position and of a random size, scaled down, never up, and
// encoded as 4:2:0 baseline. The quality changes by one step per pass over the photographs, so that the mean file size
// reaches the target. The same photographs yield the same shards. A stamp is written last, so an incomplete set is
// generated again.
#pragma once

#include "harness.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/pictures.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace bench {

namespace mr = millrace;

struct photo_set_recipe {
  const char* name;
  std::size_t width, height;
  double file_bytes;   // mean
  int first_quality;
  std::size_t samples = 1'024;
};

inline constexpr photo_set_recipe photo_sets[] = {
    {"M", 500, 375, 45'000, 88}, {"L", 500, 375, 100'000, 96}, {"S", 341, 256, 23'000, 88}};
/// Large photographs, of which crops need a small part.
inline constexpr photo_set_recipe large_photo_set = {"XL", 1'600, 1'200, 325'000, 88, 128};

struct photo_set {
  std::vector<std::string> names{};   // of the shards
  std::size_t samples = 0;
  double file_bytes = 0;   // mean of the generated files
};

namespace detail {

inline constexpr std::size_t set_shards = 8;
inline constexpr int recipe_version = 1;

struct photo {
  std::string path;
  std::size_t width, height;
};

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// Finds photographs that are large enough for several different windows, and not flat graphics.
inline std::vector<photo> find_photos(const std::string& folder) {
  std::vector<photo> photos;
  if (std::filesystem::exists(folder))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_symlink() || !entry.is_regular_file() || (extension != ".jpg" && extension != ".jpeg")) continue;
      const auto size_bytes = static_cast<double>(entry.file_size());
      if (size_bytes < 200e3 || size_bytes > 8e6) continue;
      const auto bytes = read_bytes(entry.path());
      const auto header = mr::jpeg(mr::bytes::borrowed(std::span(bytes))).header();
      const double pixels = static_cast<double>(header.width) * static_cast<double>(header.height);
      if (header.width >= 1'250 && header.height >= 1'000 && size_bytes / pixels > 0.1)
        photos.push_back({entry.path(), header.width, header.height});
    }
  std::sort(photos.begin(), photos.end(), [](const photo& a, const photo& b) { return a.path < b.path; });
  return photos;
}

/// The largest window of the photograph with the set's aspect ratio.
inline std::size_t widest_window(const photo& p, const photo_set_recipe& recipe) {
  return std::min(p.width, p.height * recipe.width / recipe.height);
}

/// A window of two fifths to all of the largest one.
inline mr::crop_box window_of(const photo& p, const photo_set_recipe& recipe, std::size_t sample) {
  mr::rng random({.seed = 1, .sample = sample});
  const std::size_t widest = widest_window(p, recipe), least = std::max(widest * 2 / 5, recipe.width);
  const auto width = static_cast<std::size_t>(
      random.between(static_cast<std::int64_t>(least), static_cast<std::int64_t>(widest)));
  const std::size_t height = std::min(width * recipe.height / recipe.width, p.height);
  return {.left = random.below(p.width - width + 1),
          .top = random.below(p.height - height + 1),
          .width = width,
          .height = height};
}

/// Sample i is a window of photograph i modulo their number.
inline std::vector<mr::image> cut_windows(const std::vector<photo>& photos, const photo_set_recipe& recipe) {
  std::vector<mr::image> windows(recipe.samples);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    mr::scratch memory;
    for (std::size_t p = next++; p < photos.size(); p = next++) {
      const auto bytes = read_bytes(photos[p].path);
      const mr::picture full_image = mr::jpeg(mr::bytes::borrowed(std::span(bytes)));
      for (std::size_t i = p; i < recipe.samples; i += photos.size())
        windows[i] =
            full_image.crop(window_of(photos[p], recipe, i)).resize(recipe.height, recipe.width).pixels(memory);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < mr::usable_cores(); ++i) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  return windows;
}

inline std::string first_text_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}   // namespace detail

/// Generates the set unless it exists. Throws setup_error if it finds no photographs.
inline photo_set make_photo_set(const photo_set_recipe& recipe) {
  namespace fs = std::filesystem;
  const std::string folder = data_folder() + "/photo-set-" + recipe.name;
  auto photos = detail::find_photos(data_folder() + "/photos");
  std::erase_if(photos, [&](const auto& p) { return detail::widest_window(p, recipe) < recipe.width; });
  if (photos.empty())
    throw mr::setup_error("no photographs found in " + data_folder() + "/photos",
                          "Run: sh bench/photos.sh (with the same MILLRACE_BENCH_DATA)");
  std::string fingerprint = std::to_string(detail::recipe_version) + " " + std::to_string(recipe.width) + " " +
                            std::to_string(recipe.file_bytes);
  for (const auto& p : photos) fingerprint += " " + fs::path(p.path).filename().string();

  photo_set set{.names = {}, .samples = recipe.samples};
  for (std::size_t s = 0; s < detail::set_shards; ++s) set.names.push_back(folder + "/" + std::to_string(s) + ".tar");
  const std::string stamp = folder + "/stamp";
  if (detail::first_text_line(stamp) != fingerprint) {
    std::fprintf(stderr, "generating the data set %s from %zu photographs\n", recipe.name, photos.size());
    fs::remove_all(folder);
    fs::create_directories(folder);
    const auto windows = detail::cut_windows(photos, recipe);
    mr::shard_writer shards({.pattern = folder + "/%d.tar", .max_samples = recipe.samples / detail::set_shards});
    int quality = recipe.first_quality;
    double bytes = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const auto file = mr::encode_jpeg(windows[i], {.quality = quality, .optimize_tables = false});
      bytes += static_cast<double>(file.size());
      // Each photograph is used once between two steps, or the quality would follow the photographs.
      if ((i + 1) % photos.size() == 0) {
        const double mean = bytes / static_cast<double>(i + 1);
        quality = std::clamp(quality + (mean < recipe.file_bytes ? 1 : -1), 50, 99);
      }
      const std::string key = "p" + std::to_string(i), label = std::to_string(i % photos.size());
      shards.write(key, {{"jpg", std::span<const std::byte>(file)}, {"cls", std::string_view(label)}});
    }
    shards.close();
    std::ofstream(stamp) << fingerprint << '\n' << bytes / static_cast<double>(windows.size()) << '\n';
  }
  std::ifstream stamp_file(stamp);
  std::string line;
  std::getline(stamp_file, line);
  stamp_file >> set.file_bytes;
  return set;
}

}   // namespace bench
