// Crops of JPEG files in one file, which programs for other processors can read without the library's readers.
//
//   bench::write_crops("M.crops", crops);
//   std::vector<bench::crop> first = bench::read_crops("M.crops", 32);      // fewer if the file has fewer
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/plan/random_crop.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bench {

struct crop {
  millrace::crop_box box;
  std::vector<std::byte> file;

  /// With the margin of two pixels that a resize needs.
  millrace::detail::jpeg_planes_request request() const {
    constexpr std::size_t margin = 2;
    return {.bytes = file,
            .left = box.left - std::min(box.left, margin),
            .top = box.top - std::min(box.top, margin),
            .right = box.left + box.width + margin,
            .bottom = box.top + box.height + margin};
  }
};

using crop_head = std::array<std::uint64_t, 5>;   // left, top, width, height, bytes of the file
using open_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Returns false if the file cannot be written.
inline bool write_crops(const std::string& name, const std::vector<crop>& crops) {
  const open_file to(std::fopen(name.c_str(), "wb"), std::fclose);
  bool good = to != nullptr;
  for (const crop& c : crops) {
    const crop_head head{c.box.left, c.box.top, c.box.width, c.box.height, c.file.size()};
    good = good && std::fwrite(&head, sizeof head, 1, to.get()) == 1 &&
           std::fwrite(c.file.data(), 1, c.file.size(), to.get()) == c.file.size();
  }
  return good && std::fflush(to.get()) == 0;
}

inline std::vector<crop> read_crops(const std::string& name, std::size_t most) {
  std::vector<crop> crops;
  const open_file from(std::fopen(name.c_str(), "rb"), std::fclose);
  crop_head head;
  while (from && crops.size() < most && std::fread(&head, sizeof head, 1, from.get()) == 1) {
    crop& c = crops.emplace_back(crop{{.left = head[0], .top = head[1], .width = head[2], .height = head[3]}, {}});
    c.file.resize(head[4]);
    if (std::fread(c.file.data(), 1, c.file.size(), from.get()) != c.file.size()) return {};
  }
  return crops;
}

}   // namespace bench
