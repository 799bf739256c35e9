// Runs random photometric operations for pillow_colors.py: prints a line for each, then the pixels before and after.
//
//   pillow_colors COUNT SEED       # COUNT random operations
//   pillow_colors frozen           # those of frozen_colors.hpp; fails if a digest differs
#include <millrace/base/digest.hpp>
#include <millrace/image/augment/photometric_runner.hpp>

#include "frozen_colors.hpp"
#include "slow_operations.hpp"

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace {

namespace mr = millrace;

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

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "frozen") {
    for (const frozen::color_case& c : frozen::cases()) {
      const slow::picture from = c.picture(), result = result_of(from, c.op);
      if (mr::detail::digest_bytes(std::as_bytes(std::span(result.data))) != c.digest) return 1;
      write_case(from, c.op, result);
    }
    return 0;
  }
  if (argc != 3) return 2;
  mr::rng random({.seed = std::strtoull(argv[2], nullptr, 10)});
  const std::vector<slow::picture> pictures = slow::pictures();
  for (long i = std::strtol(argv[1], nullptr, 10); i > 0; --i) {
    const auto kind = static_cast<slow::photometric_kind>(random.below(slow::plain_kinds));
    const slow::picture from = random.chance(0.5) ? pictures[random.below(pictures.size())]
                                                  : slow::random_picture(1 + random.below(90), 1 + random.below(90),
                                                                         random.bits());
    const slow::photometric_op op = slow::random_operation(kind, random, from);
    write_case(from, op, result_of(from, op));
  }
  return 0;
}
