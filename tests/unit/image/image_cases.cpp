// Cases for image_oracles.py.
//
//   image_cases FOLDER COUNT         # random cases of resize_cases.hpp, a line of numbers for each
//   image_cases colors COUNT SEED    # random photometric operations: a line, then the pixels before and after
//   image_cases frozen               # those of slow_operations.hpp with a digest; fails if a digest differs
//
// FOLDER/N.jpg is rendered as FOLDER/N.bilinear, FOLDER/N.bicubic and FOLDER/N.opencv_linear; FOLDER/N.patches has the
// patches of the entire image. FOLDER/N.png is 16-bit RGB, FOLDER/N.u16 has the samples of its crop.
#include <millrace/base/digest.hpp>
#include <millrace/image/augment/photometric_runner.hpp>
#include <millrace/image/labels/u16_picture.hpp>
#include <millrace/image/picture/patch_list.hpp>
#include <millrace/image/png/png.hpp>
#include <millrace/image/resize/plane_resizer.hpp>

#include "color/slow_operations.hpp"
#include "png/png_files.hpp"
#include "resize/resize_cases.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

void write_resize_cases(const std::string& folder, std::uint64_t count) {
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
}

slow::picture result_of(const slow::picture& from, const slow::photometric_op& op) {
  slow::picture p = from;
  mr::detail::photometric_runner runner;
  runner.run(std::span(&op, 1), {.data = p.data.data(), .width = p.width, .height = p.height});
  return p;
}

void write_case(const slow::picture& from, const slow::photometric_op& op, const slow::picture& result) {
  std::printf("%d %a %a %d %d %d %d %d %d %d %d %zu %zu\n", static_cast<int>(op.kind), op.value, op.second,
              op.numbers[0], op.numbers[1], op.numbers[2], op.numbers[3], static_cast<int>(op.filter), op.fill[0],
              op.fill[1], op.fill[2], from.width, from.height);
  std::fwrite(from.data.data(), 1, from.data.size(), stdout);
  std::fwrite(result.data.data(), 1, result.data.size(), stdout);
}

/// False if a digest differs.
bool write_frozen_colors() {
  for (const frozen::color_case& c : frozen::cases()) {
    const slow::picture from = c.picture(), result = result_of(from, c.op);
    if (mr::detail::digest_bytes(std::as_bytes(std::span(result.data))) != c.digest) return false;
    write_case(from, c.op, result);
  }
  return true;
}

void write_random_colors(std::uint64_t count, std::uint64_t seed) {
  mr::rng random({.seed = seed});
  const std::vector<slow::picture> pictures = slow::pictures();
  for (; count > 0; --count) {
    const auto kind = static_cast<slow::photometric_kind>(random.below(slow::plain_kinds));
    const slow::picture from = random.chance(0.5) ? pictures[random.below(pictures.size())]
                                                  : slow::random_picture(1 + random.below(90), 1 + random.below(90),
                                                                         random.bits());
    const slow::photometric_op op = slow::random_operation(kind, random, from);
    write_case(from, op, result_of(from, op));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return std::uint64_t{std::strtoull(argv[i], nullptr, 10)}; };
  if (argc == 2 && std::string_view(argv[1]) == "frozen") return write_frozen_colors() ? 0 : 1;
  if (argc == 3) write_resize_cases(argv[1], number(2));
  else if (argc == 4 && std::string_view(argv[1]) == "colors") write_random_colors(number(2), number(3));
  else return 2;
  return 0;
}
