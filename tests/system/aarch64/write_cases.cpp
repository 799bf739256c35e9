// Writes images and this machine's output for them, after comparing their planes with libjpeg's:
//
//   write_cases FILE [COUNT]
#include "../../unit/image/random_jpegs.hpp"
#include "picture_case.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  std::FILE* const to = argc > 1 ? std::fopen(argv[1], "wb") : nullptr;
  if (!to) return 2;
  const unsigned long count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1'000;
  foreign::mr::rng d({.seed = 9});
  foreign::case_runner run;
  for (unsigned long i = 0; i < count; ++i) {
    const slow::random_jpeg f = slow::draw_file(d, i % 10 == 0 ? 300 : 70);
    foreign::picture_case c{.geometry = {}, .expected = {}, .file = f.bytes};
    auto& w = c.geometry;
    const auto below = [&d](std::size_t limit) { return static_cast<std::uint32_t>(d.below(limit)); };
    w.image_width = static_cast<std::uint32_t>(f.width);
    w.image_height = static_cast<std::uint32_t>(f.height);
    w.left = below(f.width);
    w.top = below(f.height);
    w.width = 1 + below(f.width - w.left);
    w.height = 1 + below(f.height - w.top);
    w.columns = 1 + below(80);
    w.rows = 1 + below(80);
    w.flipped = below(2);
    const auto got = run.planes_of(c);
    const std::string difference =
        got ? slow::difference_of(got.planes, slow::raw_reader().read(c.file, f.height)) : refusal_name(got.refusal);
    if (!difference.empty()) {
      std::fprintf(stderr, "%s: %s\n", slow::describe(f).c_str(), difference.c_str());
      return 1;
    }
    // Every fourth image is damaged. Refusals and the output of the others must be the same on both machines, too.
    if (i % 4 == 3) c.file = slow::damaged(c.file, d);
    const auto now = run.planes_of(c);
    const bool resized = now && (now.planes.image_width != static_cast<int>(f.width) ||
                                 now.planes.image_height != static_cast<int>(f.height));
    if (resized) continue;   // the header is damaged: the geometry no longer fits
    c.expected = run.all_of(c);
    foreign::write_case(to, c);
  }
  return std::fclose(to) == 0 ? 0 : 1;
}
