// repacked: sizes, and JPEG bytes to planes for random crops, of an untouched set and of its repacked variants
//
// The set's files are repacked in memory: plainly, with restarts by size, with shared codes, and with both. The
// built-in decoder decodes a random resized crop of each image, with two pixels of margin, as a list; all variants
// alternate. Their planes are first compared with those of the untouched files.
#include "../examples/transcode/jpeg_transcoder.hpp"
#include "harness.hpp"
#include "parts/turns.hpp"
#include "photo_sets.hpp"

#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/millrace.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace mr = millrace;

namespace {

using transcode::jpeg_codes, transcode::jpeg_symbol_counts, transcode::jpeg_transcode_options,
    transcode::jpeg_transcoder, transcode::transcode_jpeg;

using file_list = std::vector<std::vector<std::byte>>;
using request_list = std::vector<mr::detail::jpeg_planes_request>;

file_list read_files(const bench::photo_set& set, std::size_t most) {
  file_list files;
  mr::block_pool pool;
  for (const auto& name : set.names) {
    mr::shard_reader reader(std::make_unique<mr::file_source>(name), pool);
    while (auto record = reader.next()) {
      if (files.size() == most) return files;
      const mr::bytes file = (*record)["jpg"];
      files.emplace_back(file.data(), file.data() + file.size());
    }
  }
  return files;
}

/// Returns crops that depend on the images, not on their coding.
request_list crops_of(const file_list& files) {
  request_list requests;
  for (const auto& file : files) {
    const auto header = mr::read_jpeg_header(file);
    mr::rng random({.seed = 3, .sample = requests.size()});
    const auto box = mr::detail::random_crop_box({.width = header.width, .height = header.height}, random);
    constexpr std::size_t margin = 2;
    requests.push_back({.bytes = file,
                        .left = box.left - std::min(box.left, margin),
                        .top = box.top - std::min(box.top, margin),
                        .right = box.left + box.width + margin,
                        .bottom = box.top + box.height + margin});
  }
  return requests;
}

double total_bytes(const file_list& files) {
  double sum = 0;
  for (const auto& file : files) sum += static_cast<double>(file.size());
  return sum;
}

/// Returns a checksum of all decoded planes.
std::uint64_t checksum_of(const mr::detail::jpeg_planes_result& result) {
  if (!result) throw mr::data_error("the built-in decoder refused an image", "Check the set");
  std::uint64_t sum = 0;
  for (int c = 0; c < result.planes.components; ++c) {
    const auto& plane = result.planes.component[c];
    for (int y = 0; y < plane.height; ++y)
      for (int x = 0; x < plane.width; ++x)
        sum = sum * 31 + plane.data[static_cast<std::size_t>(y) * plane.stride_bytes + static_cast<std::size_t>(x)];
  }
  return sum;
}

bool same_planes(const request_list& some, const request_list& others) {
  mr::detail::jpeg_plane_decoder decoder;
  for (std::size_t i = 0; i < some.size(); ++i)
    if (checksum_of(decoder.decode(some[i])) != checksum_of(decoder.decode(others[i]))) return false;
  return true;
}

/// A set that repack wrote.
struct repacked_set {
  const char* name;
  file_list files{};
  request_list crops{};
};

std::vector<repacked_set> repack_all(const file_list& originals) {
  constexpr double growth = 0.02;   // as repack --restarts-per-row auto
  jpeg_symbol_counts plain, with_restarts;
  for (const auto& file : originals) {
    jpeg_transcoder(file).count_symbols(plain);
    jpeg_transcoder(file, {.restart_growth = growth}).count_symbols(with_restarts);
  }
  const jpeg_codes codes(plain), codes_of_restarts(with_restarts);
  const struct {
    const char* name;
    jpeg_transcode_options options;
  } ways[] = {{"repacked", {}},
              {"restarts", {.restart_growth = growth, .keep_standard_codes = true}},
              {"codes", {.codes = &codes}},
              {"restarts and codes", {.restart_growth = growth, .codes = &codes_of_restarts}}};
  std::vector<repacked_set> sets;
  sets.push_back({.name = "as it is", .files = originals});
  for (const auto& way : ways) {
    sets.push_back({.name = way.name});
    for (const auto& file : originals) sets.back().files.push_back(transcode_jpeg(file, way.options));
  }
  for (auto& set : sets) set.crops = crops_of(set.files);
  return sets;
}

void measure(bench::harness& run, const bench::photo_set_recipe& recipe) {
  const auto originals = read_files(bench::make_photo_set(recipe), run.quick() ? 256 : 1'024);
  const auto sets = repack_all(originals);
  mr::detail::jpeg_plane_decoder decoder;
  std::size_t refused = 0;
  std::vector<bench::variant> variants;
  for (const auto& set : sets)
    variants.push_back({.name = set.name, .run = [&](std::size_t i, std::size_t end) {
                          decoder.decode_each(std::span(set.crops).subspan(i, end - i),
                                              [&](std::size_t, const auto& result) { refused += !result; });
                        }});
  bench::take_turns(variants, originals.size(), run.quick() ? 5 : 15);
  std::printf("%s: %zu images; us per crop for planes, least and median of rounds\n", recipe.name, originals.size());
  const std::string name = recipe.name;
  bool same = true;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const auto& v = variants[i];
    const double size = total_bytes(sets[i].files) / total_bytes(originals), time = v.least_us / variants[0].least_us;
    std::printf("  %-20s %7.1f   %s   %5.1f %% of the time, %+.2f %% of the size\n", v.name, v.least_us,
                bench::spread(v.us, "%.1f").c_str(), 100 * time, 100 * size - 100);
    run.result(name + ": " + v.name, v.least_us, "us");
    run.result(name + ": " + v.name + ", of the time as it is", 100 * time, "%");
    run.result(name + ": " + v.name + ", of the size as it is", 100 * size, "%",
               i == 2 ? bench::at_most(102) : bench::goal{});
    same = same && same_planes(sets[0].crops, sets[i].crops);
  }
  run.result(name + ": sets with other planes, or refused", same && refused == 0 ? 0 : 1, "", bench::at_most(0));
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "repacked");
  return bench::run_guarded([&] {
    for (const auto& recipe : bench::photo_sets)
      if (run.wants(recipe.name)) measure(run, recipe);
    return run.finish();
  });
}
