// Renders random cases of resize_cases.hpp for pillow.py, bilinear and bicubic: FOLDER/N.jpg, FOLDER/N.bilinear,
// FOLDER/N.bicubic, and a line of numbers for each. FOLDER/N.patches has the patches of the entire image.
// For opencv.py: FOLDER/N.opencv_linear, and 16-bit RGB in FOLDER/N.png, with the samples of its crop in FOLDER/N.u16.
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/resize/plane_resizer.hpp>

#include "png/png_files.hpp"
#include "resize/resize_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  mr::detail::plane_resizer r;
  mr::scratch memory;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto c = slow::random_case(i);
    slow::stored_planes planes(c.file);
    const std::string name = folder + "/" + std::to_string(i);
    std::ofstream(name + ".jpg", std::ios::binary)
        .write(reinterpret_cast<const char*>(c.file.data()), static_cast<std::streamsize>(c.file.size()));
    const mr::picture plan = mr::jpeg(mr::bytes::borrowed(std::span(c.file)));
    const mr::patch_list patches({mr::resize_to_patches(plan, {.patch = 7, .max_patches = 48})},
                                 {.patch = 7, .max_patches = 48});
    std::vector<std::uint8_t> row(48 * 7 * 7 * 3);
    patches.render(row, memory);
    std::ofstream(name + ".patches", std::ios::binary)
        .write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(patches.length() * 7 * 7 * 3));
    for (const auto& [filter, ending] : {std::pair(mr::resize_filter::bilinear, ".bilinear"),
                                         std::pair(mr::resize_filter::bicubic, ".bicubic"),
                                         std::pair(mr::resize_filter::opencv_linear, ".opencv_linear")}) {
      c.filter = filter;
      const auto pixels = slow::render(r, c, planes, false);
      std::ofstream(name + ending, std::ios::binary)
          .write(reinterpret_cast<const char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    }
    const auto deep = slow::make_png(slow::random_samples({.width = c.width, .height = c.height, .depth = 16,
                                                           .interlaced = i % 3 == 0}, i), {.seed = i});
    std::ofstream(name + ".png", std::ios::binary)
        .write(reinterpret_cast<const char*>(deep.data()), static_cast<std::streamsize>(deep.size()));
    mr::picture part = mr::png(mr::bytes::borrowed(std::span(deep))).crop(c.box);
    const auto samples = (c.flipped ? part.flip() : part).u16().values();
    std::ofstream(name + ".u16", std::ios::binary)
        .write(reinterpret_cast<const char*>(samples.data()), static_cast<std::streamsize>(2 * samples.size()));
    std::printf("%zu %zu %zu %zu %zu %zu %d\n", c.box.left, c.box.top, c.box.width, c.box.height, c.columns, c.rows,
                c.flipped ? 1 : 0);
  }
  return 0;
}
