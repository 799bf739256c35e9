#include <millrace/base/digest.hpp>
#include <millrace/image/augment/photometric_runner.hpp>

#include "../../../thorough.hpp"
#include "../color/slow_operations.hpp"

#include <doctest/doctest.h>

namespace {

namespace mr = millrace;
using mr::detail::photometric_kind;
using mr::detail::photometric_op;
using operations = std::vector<photometric_op>;

/// Compares each build with the slow operations, one by one.
void check_operations(const slow::picture& from, const operations& ops) {
  slow::picture expected = from;
  slow::run(ops, expected);
  const auto check = [&](auto runner) {
    slow::picture p = from;
    // Twice: the first image must not influence the second one.
    for (int time = 0; time < 2; ++time) {
      p = from;
      runner.run(ops, {.data = p.data.data(), .width = p.width, .height = p.height});
    }
    CHECK(p == expected);
  };
  check(mr::detail::basic_photometric_runner<mr::detail::portable_photometric_kernels>{});
#if defined __x86_64__ || defined __aarch64__
  if (mr::detail::cpu_has_word_layer())
    check(mr::detail::basic_photometric_runner<mr::detail::vector_photometric_kernels>{});
#endif
}

}  // namespace

TEST_CASE("one operation of each kind") {
  mr::rng random({.seed = 1});
  for (const slow::picture& from : slow::pictures())
    for (int kind = 0; kind < slow::plain_kinds; ++kind) {
      CAPTURE(kind);
      CAPTURE(from.width);
      check_operations(from, {slow::random_operation(static_cast<photometric_kind>(kind), random, from)});
    }
}

TEST_CASE("lists of operations equal the operations one by one") {
  mr::rng random({.seed = 2});
  const std::vector<slow::picture> pictures = slow::pictures();
  for (std::size_t i = 0; i < 1'500; i += stride(3)) {
    const slow::picture& from = pictures[random.below(pictures.size())];
    operations ops(random.below(6));
    for (photometric_op& op : ops)
      op = slow::random_operation(static_cast<photometric_kind>(random.below(slow::plain_kinds)), random, from);
    CAPTURE(i);
    check_operations(from, ops);
  }
}

TEST_CASE("a mix blends the image with the results of its chains") {
  mr::rng random({.seed = 3});
  const std::vector<slow::picture> pictures = slow::pictures();
  for (int i = 0; i < 200; ++i) {
    const slow::picture& from = pictures[random.below(pictures.size())];
    const auto any = [&] {
      return slow::random_operation(static_cast<photometric_kind>(random.below(slow::plain_kinds)), random, from);
    };
    operations ops{any()};
    const std::size_t mix = ops.size();
    const auto chains = static_cast<std::int32_t>(random.below(5));
    std::int32_t left = photometric_op::total_weight;
    ops.push_back({.kind = photometric_kind::mix, .numbers = {chains}});
    for (std::int32_t k = 0; k < chains; ++k) {
      const auto count = static_cast<std::int32_t>(random.below(4));
      const auto weight = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(left) + 1));
      left -= weight;
      ops.push_back({.kind = photometric_kind::chain, .numbers = {count, weight}});
      for (std::int32_t n = 0; n < count; ++n) ops.push_back(any());
    }
    ops[mix].numbers[1] = static_cast<std::int32_t>(ops.size() - mix - 1);
    ops[mix].numbers[2] = left;
    ops.push_back(any());
    CAPTURE(i);
    check_operations(from, ops);
  }
}

TEST_CASE("erased boxes end where the image ends") {
  for (const std::array<std::int32_t, 4>& box : {std::array<std::int32_t, 4>{0, 0, 100, 100}, {-5, -5, 6, 7},
                                                 {30, 3, 5, 9}, {31, 2, 1, 1}, {9, 9, 0, 0}, {200, 300, 4, 4}})
    check_operations(slow::random_picture(35, 7, 1),
                     {{.kind = photometric_kind::erase, .fill = {3, 200, 40}, .numbers = box}});
}

TEST_CASE("images without pixels and lists without operations") {
  mr::detail::photometric_runner runner;
  const operations ops{{.kind = photometric_kind::contrast, .value = 2}, {.kind = photometric_kind::equalize}};
  runner.run(ops, {.data = nullptr, .width = 0, .height = 0});
  check_operations(slow::random_picture(9, 9, 1), {});
}

TEST_CASE("the outputs of Pillow are frozen") {
  for (const frozen::color_case& c : frozen::cases()) {
    CAPTURE(static_cast<int>(c.op.kind));
    CAPTURE(c.op.value);
    slow::picture p = c.picture();
    mr::detail::photometric_runner runner;
    runner.run(std::span(&c.op, 1), {.data = p.data.data(), .width = p.width, .height = p.height});
    CHECK(mr::detail::digest_bytes(std::as_bytes(std::span(p.data))) == c.digest);
    check_operations(c.picture(), {c.op});
  }
}
