// Renders random cases of resize_cases.hpp for pillow.py, bilinear and bicubic: FOLDER/N.jpg, FOLDER/N.bilinear,
// FOLDER/N.bicubic, and a line of numbers for each. FOLDER/N.patches has the patches of the entire image.
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/resize/plane_resizer.hpp>

#include "resize/resize_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
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
    for (const bool bicubic : {false, true}) {
      c.filter = bicubic ? mr::resize_filter::bicubic : mr::resize_filter::bilinear;
      const auto pixels = slow::render(r, c, planes, false);
      std::ofstream(name + (bicubic ? ".bicubic" : ".bilinear"), std::ios::binary)
          .write(reinterpret_cast<const char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    }
    std::printf("%zu %zu %zu %zu %zu %zu %d\n", c.box.left, c.box.top, c.box.width, c.box.height, c.columns, c.rows,
                c.flipped ? 1 : 0);
  }
  return 0;
}
