// Writes files that later versions have to continue with: resume points with the digest of the following batches, and
// the indexes of the shards. Run manually, once for each version:
//
//   c++ -std=c++20 -Iinclude -Itests tests/unit/run/freeze.cpp -o freeze \
//     $(pkg-config --libs tbb libjpeg libarchive zlib)
//   ./freeze tests/system/frozen/0.1.0 tests/system/frozen/pictures-0.tar
//
// The shard of images is created if it does not exist.
//
// points.txt has one line each: flow, batches before it, batches, rows and digest after it, text (empty: from the
// start).
#include "../../temporary_folder.hpp"
#include "frozen_runs.hpp"

#include <cinttypes>
#include <cstdio>

namespace mr = millrace;

namespace {

void write_pictures(const std::string& path) {
  mr::shard_writer shard({.pattern = path.substr(0, path.rfind('-')) + "-%d.tar"});
  for (std::uint64_t i = 0; i < 20; ++i) {
    mr::image picture({std::size_t(40 + i), std::size_t(60 - i), 3});
    for (std::size_t y = 0; y < picture.shape()[0]; ++y)
      for (std::size_t x = 0; x < picture.shape()[1]; ++x)
        for (std::size_t c = 0; c < 3; ++c) picture(y, x, c) = static_cast<std::uint8_t>(x * (c + 2 + i) + y * 3 + i);
    shard.write("p" + std::to_string(i), {{"jpg", mr::encode_jpeg(picture, {.quality = 85})},
                                          {"cls", std::to_string(i % 3)}});
  }
  shard.close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "freeze: expected a folder to write to, and a shard of images\n");
    return 2;
  }
  const std::string to = argv[1], pictures = argv[2];
  std::filesystem::create_directories(to);
  if (!std::filesystem::exists(pictures)) write_pictures(pictures);
  const temporary_folder folder;
  std::filesystem::copy_file(pictures, folder / "pictures-0.tar");
  frozen::set_time(folder / "pictures-0.tar");
  const frozen_data data(folder.path(), folder / "pictures-0.tar");
  std::FILE* const points = std::fopen((to + "/points.txt").c_str(), "w");
  for (const frozen_flow& flow : frozen_flows(data)) {
    const auto print = [&](std::uint64_t before, const frozen_run& rest, const std::string& text) {
      std::fprintf(points, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64 " %s\n", flow.name.c_str(), before,
                   rest.batches, rest.rows, rest.digest, text.c_str());
    };
    const frozen_run reference = flow.run("");
    print(0, reference, "");
    for (std::size_t cut = 1; cut < reference.points.size(); cut += 4)
      print(cut, flow.run(reference.points[cut - 1]), reference.points[cut - 1]);
  }
  std::fclose(points);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".millrace-index")
      std::filesystem::copy_file(entry.path(), to + "/" + entry.path().filename().string(),
                                 std::filesystem::copy_options::overwrite_existing);
}
