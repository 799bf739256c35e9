#include "../../../thorough.hpp"
#include "../random_jpegs.hpp"
#include "../slow_planes.hpp"

#include <millrace/image/picture/normalized_picture.hpp>
#include <millrace/image/plan/random_erase.hpp>

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
                             : mr::detail::to_element<T>(mr::detail::normal_noise(erase.noise_key, index++));
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
    mr::normalized_picture<T>::render_together(items, places, s);
    for (std::size_t i = 0; i < 8; ++i)
      REQUIRE(std::memcmp(images[i].data(), rows[begin + i].data(), plain.size() * sizeof(T)) == 0);
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
