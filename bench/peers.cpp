// peers: images per CPU second compared with other loaders, which pip installs; this program is Millrace's own row
//
//   bench_peers --make M                             # the photographs of that set, unless they exist
//   bench_peers FOLDER --elements f16 --source indexed --batch 256 --workers 2 --seconds 6
//
// bench/peers/peers.py alternates it with the programs in that folder. It follows the order of bench/peers/counted.py:
// batches that are checked, batches that only run, batches that count. Its output is one line of JSON.
#include "harness.hpp"
#include "peers/photos.hpp"
#include "photo_sets.hpp"

#include <millrace/base/json_writer.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/millrace.hpp>
#include <millrace/sources/shards.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr = millrace;
using bench::crop_side, bench::imagenet;

namespace {

struct settings {
  std::string folder{}, make{}, elements = "u8", source = "shards";
  std::size_t batch = 256;
  int workers = 2;
  double seconds = 6;
};

settings settings_of(int argc, char** argv) {
  settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!name.starts_with("--")) {
      s.folder = name;
      continue;
    }
    if (++i == argc) throw mr::setup_error(std::string(name) + " has no value", "Add a value");
    if (name == "--make") s.make = argv[i];
    else if (name == "--elements") s.elements = argv[i];
    else if (name == "--source") s.source = argv[i];
    else if (name == "--batch") s.batch = std::strtoul(argv[i], nullptr, 10);
    else if (name == "--workers") s.workers = std::atoi(argv[i]);
    else if (name == "--seconds") s.seconds = std::strtod(argv[i], nullptr);
    else throw mr::setup_error("unknown option " + std::string(name), "See the head of bench/peers.cpp");
  }
  return s;
}

std::vector<std::string> shards_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".tar") names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  return names;
}

/// The mean of the pixels, 0 to 255.
double mean_of(const mr::tensor_view<std::uint8_t, 4>& pixels) {
  std::uint64_t sum = 0;
  for (const std::uint8_t p : pixels.host()) sum += p;
  return static_cast<double>(sum) / static_cast<double>(pixels.size());
}
double mean_of(const mr::tensor_view<mr::f16, 4>& pixels) {
  std::array<double, 3> sums{};
  std::size_t at = 0;
  for (const mr::f16 p : pixels.host()) sums[at++ / (crop_side * crop_side) % 3] += mr::detail::to_float(p);
  double mean = 0;
  for (std::size_t c = 0; c < 3; ++c)
    mean += 255 * (imagenet.mean[c] + imagenet.std[c] * 3 * sums[c] / static_cast<double>(pixels.size())) / 3;
  return mean;
}

template <class T>
std::uint64_t touched(const mr::tensor_view<T, 4>& pixels) {
  std::uint64_t sum = 0;
  const auto bytes = std::as_bytes(pixels.host());
  for (std::size_t at = 0; at < bytes.size(); at += 4'096) sum += static_cast<std::uint64_t>(bytes[at]);
  return sum;
}

/// Resident memory of this process, with its share of shared pages (Pss).
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;)
    if (word == "Pss:") {
      std::uint64_t kb = 0;
      file >> kb;
      return kb * 1'024;
    }
  return 0;
}

template <class Example, class Source>
void measure_crops(const settings& s, Source source) {
  const bench::clocks start = bench::now();
  mr::session run{bench::crops<Example>(std::move(source), s.batch),
                  {.epochs = mr::endless, .threads = s.workers, .notice = mr::quiet}};
  double mean = 0, first_s = 0;
  std::set<std::int32_t> labels;
  std::uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const auto b = run.next();
    if (i == 0) first_s = (bench::now() - start).wall_s;
    mean += mean_of(b.template get<&Example::pixels>()) / 4;
    for (const std::int32_t label : b.template get<&Example::label>().host()) labels.insert(label);
  }
  for (int i = 0; i < 8; ++i) {
    const auto b = run.next();
    sum += touched(b.template get<&Example::pixels>());
  }
  const bench::clocks before = bench::now();
  bench::clocks spent;
  std::uint64_t images = 0;
  while ((spent = bench::now() - before).wall_s < s.seconds) {
    const auto b = run.next();
    sum += touched(b.template get<&Example::pixels>());
    images += b.size();
  }
  std::string json = "{\"images\":" + std::to_string(images);
  const auto add = [&](const char* name, double value) {
    json += std::string(",\"") + name + "\":";
    mr::detail::append_json_number(json, value);
  };
  add("cpu_s", spent.cpu_s);
  add("wall_s", spent.wall_s);
  add("mean", mean);
  add("labels", static_cast<double>(labels.size()));
  add("resident_bytes", static_cast<double>(resident_bytes()));
  add("first_batch_s", first_s);
  add("touched", static_cast<double>(sum % 1'000));   // keeps the reads
  std::printf("%s,\"versions\":{}}\n", json.c_str());
}

/// The shards with indexes in a separate folder, which contain entry points.
auto with_entries(const std::vector<std::string>& names, const std::string& index_folder) {
  std::filesystem::create_directories(index_folder);
  return mr::shards(names, {.seed = 7,
                            .index_folder = index_folder,
                            .entries = [](std::string_view field, std::span<const std::byte> payload) {
                              return field == "jpg" ? mr::jpeg_entries(payload) : std::vector<std::byte>();
                            }});
}

template <class Source>
void measure(const settings& s, Source source) {
  if (s.elements == "f16") measure_crops<bench::f16_crop>(s, std::move(source));
  else measure_crops<bench::u8_crop>(s, std::move(source));
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    const settings s = settings_of(argc, argv);
    for (const auto& recipe : bench::photo_sets)
      if (s.make == recipe.name) {
        bench::make_photo_set(recipe);
        return 0;
      }
    const std::vector<std::string> names = shards_in(s.folder);
    if (s.source == "indexed") measure(s, mr::shards(names, {.seed = 7}));
    else if (s.source == "entries") measure(s, with_entries(names, s.folder + "-entries"));
    else measure(s, mr::shards(names, {.seed = 7, .index = mr::index::off}));
    return 0;
  });
}
