// Boxes that random_erase fills, and boxes that pair_rule exchanges between two images.
#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/plan/pair_rule.hpp>
#include <millrace/image/plan/random_erase.hpp>
#include <millrace/millrace.hpp>

#include "../../../thorough.hpp"
#include "../random_jpegs.hpp"
#include "../slow_mixes.hpp"
#include "../slow_planes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

constexpr mr::random_erase_options always{.probability = 1};

mr::bytes random_jpeg() {
  static const std::vector<std::byte> file = slow::make_file(slow::photo(60, 80, 3, 1), {});
  return mr::bytes::borrowed(file);
}

template <class T>
mr::normalized_picture<T> plain_picture() {
  return {mr::jpeg(random_jpeg()).resize(32, 40),
          mr::pixel_normalization{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}};
}

template <class T>
std::vector<T> rendered(const mr::normalized_picture<T>& p) {
  mr::scratch s;
  std::vector<T> row(3 * 32 * 40);
  p.render(row, s);
  return row;
}

}  // namespace

TEST_CASE("boxes have the areas, ratios and positions of timm's and torchvision's rule") {
  struct totals {
    double boxes = 0, area = 0, area_square = 0, log_ratio = 0, log_ratio_square = 0, left = 0, top = 0;
    void add(double a, double r, double l, double t) {
      boxes += 1, area += a, area_square += a * a, log_ratio += r, log_ratio_square += r * r, left += l, top += t;
    }
  };
  const std::size_t rounds = 40'000 / stride(10);
  for (const mr::random_erase_options& o :
       {always, mr::random_erase_options{.probability = 1, .scale_max = 0.33, .ratio_max = 3.3},
        mr::random_erase_options{.probability = 1, .scale_min = 0.9, .scale_max = 1}})
    for (const auto& [width, height] : {std::pair{224, 224}, std::pair{400, 100}, std::pair{64, 96}}) {
      const double w0 = width, h0 = height;
      CAPTURE(w0);
      totals ours, real;
      mr::rng d({.seed = 2}), e({.seed = 3});
      for (std::size_t i = 0; i < rounds; ++i) {
        const mr::picture_size size{.width = std::size_t(width), .height = std::size_t(height)};
        const auto [left, top, w, h] = mr::detail::random_erase_box(size, d, o).box;
        REQUIRE(left + w <= size.width);
        REQUIRE(top + h <= size.height);
        if (w > 0) {
          REQUIRE((w < size.width && h < size.height));
          ours.add(double(w * h) / (w0 * h0), std::log(double(h) / double(w)), double(left) / w0, double(top) / h0);
        }
        for (int attempt = 0; attempt < 10; ++attempt) {
          const double area = w0 * h0 * e.uniform(o.scale_min, o.scale_max),
                       ratio = std::exp(e.uniform(std::log(o.ratio_min), std::log(o.ratio_max)));
          const double rh = std::round(std::sqrt(area * ratio)), rw = std::round(std::sqrt(area / ratio));
          if (!(rw < w0 && rh < h0)) continue;
          const double rt = std::floor(e.uniform() * (h0 - rh + 1)), rl = std::floor(e.uniform() * (w0 - rw + 1));
          real.add(rw * rh / (w0 * h0), std::log(rh / rw), rl / w0, rt / h0);
          break;
        }
      }
      if (stride(10) > 1) continue;   // a tenth of them says too little of the means
      const auto near = [&](double a, double b, double tolerance) {
        return std::abs(a - b) < tolerance * static_cast<double>(rounds);
      };
      CHECK(near(ours.boxes, real.boxes, 0.015));
      CHECK(near(ours.area, real.area, 0.006));
      CHECK(near(ours.area_square, real.area_square, 0.006));
      CHECK(near(ours.log_ratio, real.log_ratio, 0.02));
      CHECK(near(ours.log_ratio_square, real.log_ratio_square, 0.02));
      CHECK(near(ours.left, real.left, 0.007));
      CHECK(near(ours.top, real.top, 0.007));
    }
}

TEST_CASE("a box is erased with the probability of the options") {
  mr::rng d({.seed = 5});
  int erased = 0;
  for (int i = 0; i < 20'000; ++i)
    erased += mr::detail::random_erase_box({.width = 224, .height = 224}, d, {.probability = 0.25}).box.width > 0;
  CHECK(erased == doctest::Approx(5'000).epsilon(0.05));
}

TEST_CASE("noise is normal, and the same everywhere") {
  constexpr int count = 400'000;
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  int beyond_2 = 0, beyond_3 = 0;
  for (int i = 0; i < count; ++i) {
    const double z = double(mr::detail::normal_noise(17, std::uint64_t(i)));
    sum += z, squares += z * z, cubes += z * z * z, fourths += z * z * z * z;
    beyond_2 += std::abs(z) > 2, beyond_3 += std::abs(z) > 3;
  }
  CHECK(std::abs(sum / count) < 0.008);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.008));
  CHECK(std::abs(cubes / count) < 0.03);
  CHECK(fourths / count == doctest::Approx(2.96).epsilon(0.02));
  CHECK(double(beyond_2) / count == doctest::Approx(0.0455).epsilon(0.03));
  CHECK(double(beyond_3) / count == doctest::Approx(0.0027).epsilon(0.15));
  std::string values;
  for (std::uint64_t i = 0; i < 4; ++i)
    values += std::to_string(__builtin_bit_cast(std::uint32_t, mr::detail::normal_noise(1, i))) + " ";
  CHECK(values == "3219259796 1065099081 1066215614 3213412559 ");
}

TEST_CASE_TEMPLATE("the box is erased in all planes, and nothing else, alone and together", T, float, mr::f16,
                   mr::bf16) {
  const std::vector<T> plain = rendered(plain_picture<T>());
  mr::rng random({.seed = 7});
  std::vector<mr::normalized_picture<T>> pictures;
  std::vector<std::vector<T>> rows;
  for (int round = 0; round < 40; ++round) {
    const mr::random_erase_options o{.probability = 0.8,
                                     .fill = round % 2 == 0 ? mr::erase_fill::zero : mr::erase_fill::noise};
    mr::rng same = random;
    const auto p = plain_picture<T>().random_erase(random, o);
    const auto erase = mr::detail::random_erase_box({.width = 40, .height = 32}, same, o);
    REQUIRE(random.bits() == same.bits());
    const std::vector<T> row = rendered(p);
    std::uint64_t index = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t x = i % 40, y = i / 40 % 32;
      const bool inside = x >= erase.box.left && x < erase.box.left + erase.box.width && y >= erase.box.top &&
                          y < erase.box.top + erase.box.height;
      const T expected = !inside ? plain[i]
                         : round % 2 == 0
                             ? T{}
                             : mr::detail::half_element<T>(mr::detail::normal_noise(erase.noise_key, index++));
      REQUIRE(std::memcmp(&row[i], &expected, sizeof(T)) == 0);
    }
    pictures.push_back(p);
    rows.push_back(row);
  }
  mr::scratch s;
  for (std::size_t begin = 0; begin < 40; begin += 8) {
    std::vector<std::vector<T>> images(8, std::vector<T>(plain.size()));
    std::array<const mr::normalized_picture<T>*, 8> items;
    std::array<std::span<T>, 8> places;
    for (std::size_t i = 0; i < 8; ++i) {
      items[i] = &pictures[begin + i];
      places[i] = images[i];
    }
    const auto check = [&] {
      for (std::size_t i = 0; i < 8; ++i)
        REQUIRE(std::memcmp(images[i].data(), rows[begin + i].data(), plain.size() * sizeof(T)) == 0);
    };
    mr::normalized_picture<T>::render_together(items, places, s);
    check();
    for (auto& image : images) std::fill(image.begin(), image.end(), T{});
    typename mr::normalized_picture<T>::group group;   // a batch renders its rows in groups
    for (int round = 0; round < 2; ++round) {          // the second round has no changes of the first
      group.clear();
      for (std::size_t i = 0; i < 8; ++i) items[i]->join(group, places[i]);
      group.render(s);
      check();
    }
  }
}

TEST_CASE("a batch contains the erased boxes") {
  struct example {
    mr::normalized_picture<float> pixels;
    std::int32_t number;
  };
  const auto prepare = [](std::int32_t number, mr::rng& random) {
    return example{plain_picture<float>().random_erase(random, always), number};
  };
  const std::vector<float> plain = rendered(plain_picture<float>());
  mr::session run{mr::from(std::vector<std::int32_t>{0, 1, 2, 3}) | mr::map(prepare) | mr::batch<example>({.size = 4}),
                  {.threads = 2, .notice = [](const mr::notice&) {}}};
  for (const auto& [pixels, number] : run)
    for (std::size_t i = 0; i < 4; ++i) {
      std::size_t zeros = 0, others = 0;
      for (std::size_t k = 0; k < plain.size(); ++k) {
        const float value = pixels[i].data[k];
        zeros += value == 0 && plain[k] != 0;
        others += value != 0 && value != plain[k];
      }
      CHECK(zeros > 0);
      CHECK(others == 0);
    }
}

TEST_CASE("options out of range are refused by value") {
  mr::rng d({.seed = 8});
  const auto refusal = [&](const mr::random_erase_options& o) {
    try {
      mr::detail::random_erase_box({.width = 9, .height = 9}, d, o);
    } catch (const mr::setup_error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(refusal(always) == "no error");
  CHECK(refusal({.probability = 1.5}).find("the probability of random_erase is out of range: got 1.5") !=
        std::string::npos);
  CHECK(refusal({.scale_min = 0}).find("the scale of random_erase is out of range: got 0.000000 to 0.333333") !=
        std::string::npos);
  CHECK(refusal({.scale_min = 0.5}).find("the scale of random_erase") != std::string::npos);
  CHECK(refusal({.ratio_min = 2, .ratio_max = 1}).find("the ratio of random_erase is out of range: got 2.0") !=
        std::string::npos);
  CHECK(refusal({.probability = 0, .ratio_max = 5'000}).find("the ratio of random_erase") != std::string::npos);
}

namespace {

using options = mr::detail::pair_rule_options;

std::string refusal_of(const options& o) {
  try {
    const mr::detail::pair_rule rule(o);
  } catch (const mr::setup_error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("pairs are mixed as in timm and torchvision with the same random numbers") {
  constexpr std::array all = {
      options{.mixup_alpha = 0.8}, options{.cutmix_alpha = 1}, options{.mixup_alpha = 0.2, .cutmix_alpha = 0.4},
      options{.mixup_alpha = 2, .cutmix_alpha = 1, .switch_probability = 0.1, .probability = 0.6},
      options{.cutmix_minmax = {0.2, 0.8}}, options{.cutmix_alpha = 0.3, .cutmix_minmax = {0, 1}},
      options{.mixup_alpha = 1, .cutmix_minmax = {0.5, 0.5}}};
  int boxes = 0, at_edges = 0, empty_boxes = 0, unmixed = 0;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const mr::detail::pair_rule rule(all[k]);
    CHECK(rule.cuts() == (all[k].cutmix_alpha > 0 || all[k].cutmix_minmax[1] > 0));
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::array<std::size_t, 5> sides = {224, 96, 1, 7, 65'535};
      const mr::picture_size size{.width = sides[i % 5], .height = sides[i / 5 % 5]};
      mr::rng random({.seed = 3, .epoch = k, .sample = i, .stage = 1}), same = random;
      const mr::detail::pair_mix got = rule.draw(random, size);
      const auto expected =
          slow_mixes::draw(all[k], same, static_cast<long>(size.height), static_cast<long>(size.width));
      REQUIRE(got.mixes == expected.mixes);
      REQUIRE(got.row.partner == mr::row_mix::none);
      REQUIRE(got.row.weight == expected.weight);
      REQUIRE(got.row.weight % 2 == 0);
      REQUIRE(got.row.left == expected.left);
      REQUIRE(got.row.right == expected.right);
      REQUIRE(got.row.top == expected.top);
      REQUIRE(got.row.bottom == expected.bottom);
      REQUIRE(static_cast<double>(got.lambda) == doctest::Approx(expected.lambda).epsilon(1e-6));
      REQUIRE(random.bits() == same.bits());   // as many draws
      boxes += expected.by_cutmix ? 1 : 0;
      at_edges += expected.by_cutmix && expected.left == 0 ? 1 : 0;
      empty_boxes += expected.by_cutmix && expected.left == expected.right ? 1 : 0;
      unmixed += expected.mixes ? 0 : 1;
    }
  }
  CHECK(boxes > 50'000);
  CHECK(at_edges > 1'000);
  CHECK(empty_boxes > 100);
  CHECK(unmixed > 7'000);
}

TEST_CASE("lambda is the weight of the labels: the average share of the pixels that stay") {
  const mr::detail::pair_rule both({.mixup_alpha = 0.8, .cutmix_alpha = 1, .switch_probability = 0.25});
  constexpr int pairs = 40'000;
  int by_cutmix = 0;
  double mixup_sum = 0, mixup_squares = 0, cutmix_sum = 0;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    mr::rng random({.seed = 5, .sample = i});
    const mr::detail::pair_mix got = both.draw(random, {.width = 224, .height = 160});
    const int inside = (got.row.right - got.row.left) * (got.row.bottom - got.row.top);
    if (got.row.weight == mr::row_mix::full_weight) {
      CHECK(got.lambda == static_cast<float>((224.0 * 160 - inside) / (224.0 * 160)));
      ++by_cutmix;
      cutmix_sum += static_cast<double>(got.lambda);
    } else {
      CHECK(got.lambda * 65'536 == static_cast<float>(got.row.weight));
      CHECK(inside == 0);
      mixup_sum += static_cast<double>(got.lambda) - 0.5;
      mixup_squares += std::pow(static_cast<double>(got.lambda) - 0.5, 2);
    }
  }
  CHECK(by_cutmix == doctest::Approx(pairs * 0.25).epsilon(0.05));
  CHECK(std::abs(mixup_sum / (pairs - by_cutmix)) < 0.01);
  CHECK(mixup_squares / (pairs - by_cutmix) == doctest::Approx(0.25 / 2.6).epsilon(0.03));
  // A center is anywhere, so a part of the box is cut off: of sides r, 1 - r / 4 is left of each on average. With a
  // uniform share 1 - lambda has the mean of r^2 (1 - r / 4)^2, r = sqrt(share): 1/2 - 1/5 + 1/48.
  CHECK(cutmix_sum / by_cutmix == doctest::Approx(1 - (1.0 / 2 - 1.0 / 5 + 1.0 / 48)).epsilon(0.02));
}

TEST_CASE("options out of range are refused by name, with the value") {
  CHECK(refusal_of({.mixup_alpha = 0.8}) == "no error");
  CHECK(refusal_of({}).find("mix_rows mixes nothing: got neither mixup_alpha nor cutmix_alpha") != std::string::npos);
  CHECK(refusal_of({.mixup_alpha = -1}).find("mixup_alpha of mixed rows is out of range: got -1.0") !=
        std::string::npos);
  CHECK(refusal_of({.cutmix_alpha = 5000}).find("cutmix_alpha of mixed rows is out of range: got 5000") !=
        std::string::npos);
  CHECK(refusal_of({.cutmix_alpha = std::nan("")}).find("cutmix_alpha of mixed rows") != std::string::npos);
  CHECK(refusal_of({.mixup_alpha = 1, .switch_probability = 1.5}).find("switch_probability") != std::string::npos);
  CHECK(refusal_of({.mixup_alpha = 1, .probability = -0.1}).find("probability of mixed rows") != std::string::npos);
  CHECK(refusal_of({.cutmix_minmax = {0.8, 0.2}}).find("got 0.2") != std::string::npos);
  CHECK(refusal_of({.cutmix_minmax = {-0.5, 0.2}}).find("got -0.5") != std::string::npos);
  CHECK(refusal_of({.cutmix_minmax = {0.5, 1.5}}).find("got 1.5") != std::string::npos);
}

namespace {

constexpr int draws = 100'000;

double share_of(std::uint64_t fixed) { return static_cast<double>(fixed) * 0x1p-32; }

/// The integral of (x (1 - x))^(alpha - 1) from 0 to `end`, which is at most one half: by x = t^(1 / alpha), which
/// leaves no pole at 0.
double integral_to(double end, double alpha) {
  constexpr int steps = 20'000;
  const double width = std::pow(end, alpha) / steps;
  double sum = 0;
  for (int i = 0; i < steps; ++i) sum += std::pow(1 - std::pow((i + 0.5) * width, 1 / alpha), alpha - 1);
  return sum * width / alpha;
}

/// The probability of a share up to `end`.
double expected_below(double end, double alpha) { return 0.5 * integral_to(end, alpha) / integral_to(0.5, alpha); }

}  // namespace

TEST_CASE("shares have the moments and the quantiles of Beta(alpha, alpha)") {
  for (const double alpha : {0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.5, 2.0, 4.0, 32.0}) {
    CAPTURE(alpha);
    const mr::detail::beta_draw draw(alpha);
    mr::rng random({.seed = 7, .stage = static_cast<std::uint64_t>(alpha * 100)});
    double sum = 0, squares = 0, fourths = 0;
    constexpr std::array ends = {0.001, 0.02, 0.1, 0.25, 0.4, 0.5};
    std::array<int, ends.size()> below{}, above{};
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t fixed = draw(random);
      REQUIRE(fixed <= std::uint64_t{1} << 32);
      const double x = share_of(fixed) - 0.5;
      sum += x;
      squares += x * x;
      fourths += x * x * x * x;
      for (std::size_t e = 0; e < ends.size(); ++e) {
        below[e] += share_of(fixed) <= ends[e] ? 1 : 0;
        above[e] += share_of(fixed) >= 1 - ends[e] ? 1 : 0;
      }
    }
    const double variance = 0.25 / (2 * alpha + 1);
    const double kurtosis = 3 - 6 / (2 * alpha + 3);
    CHECK(std::abs(sum / draws) < 5 * std::sqrt(variance / draws));
    CHECK(squares / draws == doctest::Approx(variance).epsilon(0.02));
    CHECK(fourths / draws == doctest::Approx(kurtosis * variance * variance).epsilon(0.04));
    for (std::size_t e = 0; e < ends.size(); ++e) {
      CAPTURE(ends[e]);
      const double p = expected_below(ends[e], alpha);
      const double margin = 5 * std::sqrt(p * (1 - p) * draws) + 1;
      CHECK(std::abs(below[e] - p * draws) < margin);
      CHECK(std::abs(above[e] - p * draws) < margin);
    }
  }
}

TEST_CASE("the draws are pinned: no compiler, machine or version may change them") {
  std::string text;
  for (const double alpha : {0.01, 0.2, 0.8, 1.0, 2.0}) {
    const mr::detail::beta_draw draw(alpha);
    mr::rng random({.seed = 1, .epoch = 2, .sample = 3, .stage = 4});
    for (int i = 0; i < 3; ++i) text += std::to_string(draw(random)) + " ";
  }
  CHECK(text == "4294967296 4294967296 0 4294866955 4290798358 4294095440 4015775841 3650470577 1571044705 3839040686 "
                 "454913518 2909128552 3839040685 2909128551 2464016681 ");
}

TEST_CASE("an alpha out of range is refused by its value") {
  for (const double alpha : {0.0, -1.0, 0.0009, 1025.0, std::nan("")}) {
    CHECK_THROWS_AS(mr::detail::beta_draw{alpha}, mr::setup_error);
  }
  CHECK_THROWS_WITH(mr::detail::beta_draw{2000}, doctest::Contains("got 2000.000000, expected 1/1024 to 1024"));
}
