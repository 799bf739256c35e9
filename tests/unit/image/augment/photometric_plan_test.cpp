#include <millrace/base/digest.hpp>
#include <millrace/image/augment/photometric_plan.hpp>

#include "../color/slow_operations.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

namespace {

namespace mr = millrace;
using mr::photometric_plan;
using mr::detail::photometric_kind;
using mr::detail::operations_of, mr::detail::photometric_op;

constexpr mr::picture_size size{.width = 224, .height = 160};

std::uint64_t digest_of(const photometric_plan& plan, std::uint64_t digest) {
  for (const photometric_op& op : operations_of(plan)) {
    digest = mr::detail::combine_keys(digest, static_cast<std::uint64_t>(op.kind) << 8 |
                                                  static_cast<std::uint64_t>(op.filter));
    for (const std::uint8_t byte : op.fill) digest = mr::detail::combine_keys(digest, byte);
    for (const double value : {op.value, op.second})
      digest = mr::detail::combine_keys(digest, __builtin_bit_cast(std::uint64_t, value));
    for (const std::int32_t number : op.numbers)
      digest = mr::detail::combine_keys(digest, static_cast<std::uint64_t>(number));
  }
  return mr::detail::combine_keys(digest, operations_of(plan).size());
}

/// Calls each with 100 plans, each drawn with its own stream.
template <class Draw, class Each>
void for_100_plans(const Draw& draw, const Each& each) {
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    mr::rng random({.seed = 5, .sample = sample});
    photometric_plan plan;
    draw(plan, random);
    each(plan);
  }
}

template <class Draw>
std::uint64_t digest_of_100(const Draw& draw) {
  std::uint64_t digest = 0;
  for_100_plans(draw, [&](const photometric_plan& plan) { digest = digest_of(plan, digest); });
  return digest;
}

const mr::color_jitter_options jitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};

}  // namespace

TEST_CASE("the draws of a key are frozen, on every compiler and flag") {
  const auto check = [](const std::string& name, std::uint64_t expected, const auto& draw) {
    CAPTURE(name);
    CHECK(digest_of_100(draw) == expected);
  };
  using mr::augment_policy;
  check("color_jitter", 0xf70798226c4601d8, [](auto& p, mr::rng& r) { p.color_jitter(jitter, r); });
  check("color_jitter, rarely", 0x97916d44a82d1bfa, [](auto& p, mr::rng& r) {
    p.color_jitter({.brightness = {0.5, 0.9}, .saturation = 2, .probability = 0.3}, r);
  });
  check("the random ones", 0x52d5bf0dd0cf5ccd, [](auto& p, mr::rng& r) {
    p.random_grayscale(r).random_invert(r).random_posterize(3, r).random_solarize(128, r, 0.2);
    p.random_sharpness(2, r).random_autocontrast(r).random_equalize(r);
  });
  check("random_gaussian_blur", 0x626500bab1ac8d16, [](auto& p, mr::rng& r) {
    p.random_gaussian_blur({.probability = 0.5}, r);
  });
  check("random_pillow_blur", 0x6aa65f9fa8b83074, [](auto& p, mr::rng& r) { p.random_pillow_blur({}, r); });
  check("rand_augment", 0x679d745881448a03, [](auto& p, mr::rng& r) { p.rand_augment(size, r); });
  check("rand_augment of timm", 0xa9bb043bd669fbdc, [](auto& p, mr::rng& r) {
    p.rand_augment(size, r, {.numbers = mr::augment_numbers::timm});
  });
  check("rand_augment of timm, other options", 0xd92e5a596d4551d2, [](auto& p, mr::rng& r) {
    p.rand_augment(size, r, {.numbers = mr::augment_numbers::timm, .count = 3, .magnitude = 7, .deviation = 101,
                             .increasing = false, .probability = 1, .filter = mr::interpolation::nearest,
                             .fill = mr::rgb_color{1, 2, 3}});
  });
  check("trivial_augment", 0x4dcf30ed2c0a8bd1, [](auto& p, mr::rng& r) { p.trivial_augment(size, r); });
  const std::pair<augment_policy, std::uint64_t> policies[] = {
      {augment_policy::torchvision_imagenet, 0x4ed4d61ca9f61271},
      {augment_policy::torchvision_cifar10, 0xb90db08d722fffee},
      {augment_policy::torchvision_svhn, 0x853044af0d9dec74},
      {augment_policy::timm_original, 0x850c7f3c95feeab6},
      {augment_policy::timm_originalr, 0x41f9a7e298356158},
      {augment_policy::timm_v0, 0x1f04f8d0b9a6ca4a},
      {augment_policy::timm_v0r, 0x30bfc5a43a0d7ff0}};
  for (const auto& policy : policies)
    check("auto_augment", policy.second, [&](auto& p, mr::rng& r) {
      p.auto_augment(size, r, {.policy = policy.first, .deviation = 0.5});
    });
  check("aug_mix", 0x1584e216f0676502, [](auto& p, mr::rng& r) { p.aug_mix(size, r); });
  check("random_erasing", 0x511c622b6b474d83, [](auto& p, mr::rng& r) { p.random_erasing(size, r); });
  check("random_erasing of several", 0x7dd1b6b9d7c49ca2, [](auto& p, mr::rng& r) {
    p.random_erasing(size, r, {.probability = 1, .scale_max = 1, .max_boxes = 4});
  });
}

TEST_CASE("a jitter draws each order and each factor equally often") {
  std::map<std::vector<photometric_kind>, int> orders;
  double least = 9, highest = 0, sum = 0;
  constexpr int plans = 24'000;
  mr::rng random({.seed = 1});
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.color_jitter(jitter, random);
    std::vector<photometric_kind> order;
    for (const photometric_op& op : operations_of(plan)) {
      order.push_back(op.kind);
      if (op.kind == photometric_kind::hue) CHECK(std::abs(op.value) <= 0.1);
      if (op.kind != photometric_kind::contrast) continue;
      least = std::min(least, op.value);
      highest = std::max(highest, op.value);
      sum += op.value;
    }
    ++orders[order];
  }
  CHECK(orders.size() == 24);
  for (const auto& order : orders) CHECK(std::abs(order.second - plans / 24) < 160);
  CHECK(least == doctest::Approx(0.6).epsilon(0.001));
  CHECK(highest == doctest::Approx(1.4).epsilon(0.001));
  CHECK(sum / plans == doctest::Approx(1).epsilon(0.005));
}

TEST_CASE("a jitter draws only operations with a range, and nothing if it does not happen") {
  mr::rng random({.seed = 1}), other({.seed = 1});
  photometric_plan plan;
  plan.color_jitter({.saturation = {0.2, 0.2}}, random);
  REQUIRE(operations_of(plan).size() == 1);
  CHECK(operations_of(plan)[0] == photometric_op{.kind = photometric_kind::saturation, .value = 0.2});
  for (int i = 0; i < 4; ++i) other.bits();   // three for the order, one for the factor
  CHECK(random.bits() == other.bits());

  plan = {};
  plan.color_jitter({.brightness = 0.4, .probability = 0}, random);
  other.bits();
  CHECK(plan.empty());
  CHECK(random.bits() == other.bits());
}

TEST_CASE("RandAugment has torchvision's magnitudes") {
  std::map<photometric_kind, std::vector<double>> values_by_kind;
  mr::rng random({.seed = 2});
  for (int i = 0; i < 4'000; ++i) {
    photometric_plan plan;
    plan.rand_augment({.width = 224, .height = 224}, random, {.count = 1});
    CHECK(operations_of(plan).size() <= 1);
    for (const photometric_op& op : operations_of(plan)) {
      const double value = op.kind == photometric_kind::translate && op.value == 0 ? op.second
                           : op.kind == photometric_kind::posterize ? op.numbers[0] : op.value;
      auto& values = values_by_kind[op.kind];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      CHECK(op.filter == mr::detail::warp_filter::nearest);
      CHECK(op.fill == mr::rgb_color{});
    }
  }
  const auto check = [&](photometric_kind kind, double value, bool has_sign, double middle = 0) {
    CAPTURE(static_cast<int>(kind));
    CHECK(values_by_kind[kind].size() == (has_sign ? 2 : 1));
    for (const double got : values_by_kind[kind]) CHECK(std::abs(std::abs(got - middle) - value) < 1e-6);
  };
  check(photometric_kind::shear_x, 0.09, true);
  check(photometric_kind::shear_y, 0.09, true);
  check(photometric_kind::translate, 30, true);
  check(photometric_kind::rotate, 9, true);
  check(photometric_kind::brightness, 0.27, true, 1);
  check(photometric_kind::saturation, 0.27, true, 1);
  check(photometric_kind::contrast, 0.27, true, 1);
  check(photometric_kind::sharpness, 0.27, true, 1);
  check(photometric_kind::posterize, 7, false);
  CHECK(std::abs(values_by_kind[photometric_kind::solarize].at(0) - 178.5) < 1e-4);
  check(photometric_kind::autocontrast, 0, false);
  check(photometric_kind::equalize, 0, false);
  CHECK(values_by_kind.size() == 12);
}

TEST_CASE("TrivialAugment draws all bins of its wide ranges") {
  std::map<photometric_kind, std::pair<double, double>> ranges;
  mr::rng random({.seed = 3});
  int none = 0;
  constexpr int plans = 20'000;
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.trivial_augment(size, random);
    none += plan.empty() ? 1 : 0;
    for (const photometric_op& op : operations_of(plan)) {
      const double value = op.kind == photometric_kind::posterize ? op.numbers[0] : op.value + op.second;
      auto& range = ranges.try_emplace(op.kind, value, value).first->second;
      range = {std::min(range.first, value), std::max(range.second, value)};
    }
  }
  CHECK(std::abs(none - plans / 14) < 200);
  const auto check = [&](photometric_kind kind, double low, double high) {
    CAPTURE(static_cast<int>(kind));
    CHECK(std::abs(ranges[kind].first - low) < 1e-6);
    CHECK(std::abs(ranges[kind].second - high) < 1e-6);
  };
  check(photometric_kind::shear_x, -0.99, 0.99);
  check(photometric_kind::translate, -32, 32);
  check(photometric_kind::rotate, -135, 135);
  check(photometric_kind::brightness, 0.01, 1.99);
  check(photometric_kind::posterize, 2, 8);
  check(photometric_kind::solarize, 0, 255);
}

TEST_CASE("timm's levels reach the values of its table") {
  std::map<photometric_kind, std::pair<double, double>> ranges;
  mr::rng random({.seed = 4});
  int operations = 0, bicubic = 0, warps = 0;
  constexpr int plans = 30'000;
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.rand_augment(size, random, {.numbers = mr::augment_numbers::timm, .magnitude = 10, .deviation = 101});
    operations += static_cast<int>(operations_of(plan).size());
    for (const photometric_op& op : operations_of(plan)) {
      const bool is_integer = op.kind == photometric_kind::posterize || op.kind == photometric_kind::solarize_add;
      const double value = is_integer ? op.numbers[0] : op.value;
      auto& range = ranges.try_emplace(op.kind, value, value).first->second;
      range = {std::min(range.first, value), std::max(range.second, value)};
      if (op.kind < photometric_kind::rotate) continue;
      ++warps;
      bicubic += op.filter == mr::detail::warp_filter::bicubic ? 1 : 0;
      CHECK(op.filter != mr::detail::warp_filter::nearest);
      CHECK(op.fill == mr::mean_color);
    }
  }
  CHECK(std::abs(operations - plans) < 700);   // two, each with probability 1/2
  CHECK(std::abs(2 * bicubic - warps) < 500);
  const auto check = [&](photometric_kind kind, double low, double high, double tolerance) {
    CAPTURE(static_cast<int>(kind));
    CHECK(std::abs(ranges[kind].first - low) <= tolerance);
    CHECK(std::abs(ranges[kind].second - high) <= tolerance);
  };
  check(photometric_kind::shear_x, -0.3, 0.3, 0.001);
  check(photometric_kind::translate, -100.8, 100.8, 0.3);
  check(photometric_kind::rotate, -30, 30, 0.1);
  check(photometric_kind::brightness, 0.1, 1.9, 0.005);
  check(photometric_kind::posterize, 1, 4, 0);   // level 10 itself, which keeps no bits, is never drawn
  check(photometric_kind::solarize, 1, 256, 0);
  check(photometric_kind::solarize_add, 0, 109, 0);
  CHECK(ranges.size() == 14);   // 15 operations, two of which move the image
}

TEST_CASE("AutoAugment applies both operations of one pair") {
  std::map<photometric_kind, int> counts;
  mr::rng random({.seed = 5});
  constexpr int plans = 25'000;
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.auto_augment(size, random);
    CHECK(operations_of(plan).size() <= 2);
    for (const photometric_op& op : operations_of(plan)) ++counts[op.kind];
  }
  const auto check = [&](photometric_kind kind, double of_25) {
    CAPTURE(static_cast<int>(kind));
    CHECK(std::abs(counts[kind] - of_25 * plans / 25) < 600);
  };
  check(photometric_kind::posterize, 0.4 + 0.6 + 0.6 + 0.8 + 0.4);
  check(photometric_kind::rotate, 0.6 + 0.8 + 0.2 + 0.8 + 0.4 + 0.8);
  check(photometric_kind::solarize, 0.6 + 0.2 + 0.6 + 0.6 + 0.8 + 0.2 + 0.6);
  check(photometric_kind::invert, 0.6 + 0.6 + 0.6);
  check(photometric_kind::shear_x, 0.6);
  check(photometric_kind::sharpness, 0.4);
  check(photometric_kind::contrast, 2);
  check(photometric_kind::autocontrast, 1.2);
  check(photometric_kind::saturation, 0.4 + 0.6 + 1 + 0.8 + 0.4 + 0.6);
  check(photometric_kind::equalize,
        0.8 + 0.6 + 0.4 + 0.4 + 0.6 + 1 + 0.6 + 0.6 + 0 + 0.8 + 1 + 1 + 0.6 + 0.4 + 1 + 0.8 + 0.6);
}

TEST_CASE("AugMix mixes chains of one to three with weights that sum to one") {
  mr::rng random({.seed = 6});
  double own = 0;
  std::map<std::int32_t, int> depths;
  constexpr int plans = 5'000;
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.brightness(1).aug_mix(size, random);
    const auto ops = operations_of(plan);
    REQUIRE(ops[1].kind == photometric_kind::mix);
    CHECK(ops[1].numbers[0] == 3);
    CHECK(static_cast<std::size_t>(ops[1].numbers[1]) + 2 == ops.size());
    own += ops[1].numbers[2] / 16'384.0;
    std::int32_t weights = ops[1].numbers[2];
    std::size_t at = 2;
    for (int chain = 0; chain < 3; ++chain) {
      REQUIRE(ops[at].kind == photometric_kind::chain);
      CHECK(ops[at].numbers[1] >= 0);
      weights += ops[at].numbers[1];
      ++depths[ops[at].numbers[0]];
      at += static_cast<std::size_t>(ops[at].numbers[0]) + 1;
    }
    CHECK(at == ops.size());
    CHECK(weights == 16'384);
  }
  CHECK(std::abs(own / plans - 0.5) < 0.02);
  CHECK(depths.size() == 3);
  for (const auto& depth : depths) CHECK(std::abs(depth.second - plans) < 300);
}

TEST_CASE("erased boxes have the requested areas and ratios") {
  mr::rng random({.seed = 7});
  int boxes = 0;
  double area = 0, log_ratio = 0, log_square = 0;
  constexpr int plans = 20'000;
  for (int i = 0; i < plans; ++i) {
    photometric_plan plan;
    plan.random_erasing(size, random);
    for (const photometric_op& op : operations_of(plan)) {
      const auto [left, top, width, height] = op.numbers;
      CHECK((left >= 0 && top >= 0 && width > 0 && height > 0));
      CHECK((left + width <= 224 && top + height <= 160 && width < 224 && height < 160));
      ++boxes;
      area += width * height / (224.0 * 160);
      const double ratio = std::log(static_cast<double>(height) / width);
      log_ratio += ratio;
      log_square += ratio * ratio;
    }
  }
  CHECK(std::abs(boxes - plans / 2) < 350);
  CHECK(area / boxes == doctest::Approx(0.168).epsilon(0.03));   // slightly below 0.175: large ones fit less often
  CHECK(std::abs(log_ratio / boxes) < 0.15);
  CHECK(log_square / boxes == doctest::Approx(0.44).epsilon(0.1));   // slightly below that of the uniform distribution
  photometric_plan none;
  none.random_erasing({.width = 1, .height = 1}, random, {.probability = 1});
  CHECK(none.empty());
}

TEST_CASE("a plan runs its operations on a row") {
  mr::scratch s;
  photometric_plan plan;
  plan.brightness(1.4).rotate(9, {.filter = mr::interpolation::bilinear, .fill = {1, 2, 3}}).hue(0.1).invert();
  plan.posterize(5).shear_x(0.1).shear_y(-0.1).translate(3, -4).contrast(0.5).saturation(1.5).sharpness(1.9);
  plan.solarize(100).solarize_add(20).autocontrast().gaussian_blur(5, 1).pillow_blur(1.5).equalize().grayscale();
  plan.erase({.left = 5, .top = 6, .width = 20, .height = 30});
  CHECK(operations_of(plan).size() == 19);
  slow::picture from = slow::random_picture(60, 50, 1), result = from;
  plan.run(from.data, 60, 50, s);
  slow::run(operations_of(plan), result);
  CHECK(from == result);

  photometric_plan twice = plan;
  twice.apply(twice);
  CHECK(operations_of(twice).size() == 38);
  slow::run(operations_of(plan), result);
  plan.run(from.data, 60, 50, s);
  CHECK(from == result);
  CHECK(twice == photometric_plan(plan).apply(plan));
}

TEST_CASE("impossible numbers are refused") {
  mr::rng random({.seed = 8});
  mr::scratch s;
  photometric_plan plan;
  const double nan = std::nan("");
  const auto refused = [&](const auto& call) { CHECK_THROWS_AS(call(), mr::setup_error); };
  for (const double factor : {-0.1, 1e4, nan, HUGE_VAL}) {
    refused([&] { plan.brightness(factor); });
    refused([&] { plan.contrast(factor); });
    refused([&] { plan.saturation(factor); });
    refused([&] { plan.sharpness(factor); });
    refused([&] { plan.pillow_blur(factor); });
    refused([&] { plan.gaussian_blur(9, factor < 1 ? factor : 1e7); });
    refused([&] { plan.color_jitter({.brightness = {0, factor}}, random); });
    refused([&] { plan.color_jitter({.probability = factor}, random); });
    refused([&] { plan.random_gaussian_blur({.sigma_min = 1, .sigma_max = factor < 1 ? factor : 1e7}, random); });
    refused([&] { plan.random_pillow_blur({.radius_min = factor}, random); });
    refused([&] { plan.random_erasing(size, random, {.scale_max = factor}); });
    refused([&] { plan.rand_augment(size, random, {.magnitude = factor}); });
    refused([&] { plan.rand_augment(size, random, {.numbers = mr::augment_numbers::timm, .magnitude = factor}); });
  }
  for (const double value : {-0.6, 0.6, nan}) {
    refused([&] { plan.hue(value); });
    refused([&] { plan.color_jitter({.hue = value}, random); });
  }
  refused([&] { plan.posterize(9); });
  refused([&] { plan.solarize(257); });
  refused([&] { plan.solarize_add(256); });
  refused([&] { plan.gaussian_blur(8, 1); });
  refused([&] { plan.gaussian_blur(1003, 1); });
  refused([&] { plan.rotate(nan); });
  refused([&] { plan.shear_x(1e9); });
  refused([&] { plan.shear_y(nan); });
  refused([&] { plan.translate(1e9, 0); });
  refused([&] { plan.translate(0, nan); });
  refused([&] { plan.rand_augment(size, random, {.magnitude = 31}); });
  refused([&] { plan.rand_augment(size, random, {.bins = 1}); });
  refused([&] { plan.trivial_augment(size, random, {.bins = 0}); });
  refused([&] { plan.auto_augment(size, random, {.deviation = -1}); });
  refused([&] { plan.aug_mix(size, random, {.severity = 0}); });
  refused([&] { plan.aug_mix(size, random, {.severity = 11}); });
  refused([&] { plan.aug_mix(size, random, {.width = 0}); });
  refused([&] { plan.random_erasing(size, random, {.max_boxes = 0}); });
  std::vector<std::uint8_t> row(30);
  refused([&] { plan.run(row, 3, 3, s); });
  CHECK(plan.empty());
}
