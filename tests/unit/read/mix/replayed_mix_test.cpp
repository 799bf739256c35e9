// Mixed rows of sources without an index: positions count from the beginning of each pass or epoch, independent of
// where a session begins to read.
#include "../../image/slow_mixes.hpp"
#include "../run/replay_flows.hpp"

#include <millrace/mix_rows.hpp>
#include <millrace/stages/expand.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>

#include <cstring>

namespace mr = millrace;

namespace {

constexpr std::size_t height = 6, width = 4;
constexpr std::uint64_t seed = 4;

struct example {
  mr::tensor<mr::f16, 3> pixels;   // [2, height, width]
  std::int64_t label;
};
example prepare(int n, mr::rng& random) {
  example e{mr::tensor<mr::f16, 3>({2, height, width}), n};
  for (mr::f16& v : e.pixels.span()) v = mr::detail::to_f16(static_cast<float>(random.uniform(-2, 2)));
  return e;
}

struct twice {
  using output = int;
  std::size_t max_outputs(int) const { return 2; }
  void push(int n, auto& emit) const {
    emit(2 * n);
    if (n % 3 != 0) emit(2 * n + 1);
  }
};

struct row {
  std::vector<mr::f16> pixels;
  std::int64_t label_a, label_b;
  float lambda;
  friend bool operator==(const row&, const row&) = default;
};
struct trace {
  std::vector<std::vector<row>> batches{};
  std::vector<std::string> positions{};
  std::vector<std::uint64_t> epochs{};
};

template <class Flow>
trace run_rows(Flow flow, const mr::session_options& options) {
  mr::session session{std::move(flow), options};
  trace t;
  for (auto& b : session) {
    auto& rows = t.batches.emplace_back();
    const auto pixels = b.template get<&example::pixels>();
    const auto labels = b.template get<&example::label>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      const auto elements = pixels[i].span();
      rows.push_back({{elements.begin(), elements.end()}, labels[i], labels[i], 1});
      if constexpr (requires { b.lambda(); }) {
        rows.back().label_b = b.label_b()[i];
        rows.back().lambda = b.lambda()[i];
      }
    }
    t.positions.push_back(mr::to_text(b.position()));
    t.epochs.push_back(b.epoch());
  }
  return t;
}

const mr::mix_rows_options both{.mixup_alpha = 0.8, .cutmix_alpha = 1};

/// Mixes the rows of one rank of `ranks`.
trace slowly_mixed(trace t, std::size_t size, std::size_t stride, mr::world mine = mr::single_process) {
  std::uint64_t in_epoch = 0;
  for (std::size_t b = 0; b < t.batches.size(); ++b, ++in_epoch) {
    if (b > 0 && t.epochs[b] != t.epochs[b - 1]) in_epoch = 0;
    auto& rows = t.batches[b];
    for (std::size_t i = 0; i + stride < rows.size(); ++i) {
      if (i / stride % 2 != 0) continue;
      mr::rng random({.seed = seed, .epoch = t.epochs[b], .sample = (in_epoch * size + i) * mine.size + mine.rank,
                      .stage = 1});
      const auto mix = slow_mixes::draw({.mixup_alpha = 0.8, .cutmix_alpha = 1}, random, height, width);
      row &first = rows[i], &second = rows[i + stride];
      slow_mixes::mix(mix, first.pixels, second.pixels, height, width, true);
      first.label_b = second.label_a;
      second.label_b = first.label_a;
      first.lambda = second.lambda = static_cast<float>(mix.lambda);
    }
    mr::position p = mr::parse_position(t.positions[b]);
    p.stride = static_cast<std::uint32_t>(stride * mine.size);
    t.positions[b] = mr::to_text(p);
  }
  return t;
}

/// Pixels that are rendered four at a time; every seventh fails when half of it is written.
struct late_pixels {
  using element = std::uint8_t;
  static constexpr std::size_t together = 4;
  int number = 0;

  static bool is_bad(int n) { return n % 7 == 3; }
  std::array<std::size_t, 3> shape() const { return {2, 3, 3}; }
  void render(std::span<std::uint8_t> to) const {
    std::fill(to.begin(), to.end(), static_cast<std::uint8_t>(number));
    if (is_bad(number)) throw mr::data_error("the number " + std::to_string(number) + " is bad", "Take another one");
  }
  static void render_together(std::span<const late_pixels* const> all, std::span<const std::span<std::uint8_t>> rows,
                              mr::scratch&) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->render(rows[i]);
  }
};
struct late_example {
  late_pixels pixels;
  std::int32_t label;
};

trace rest_of(const trace& t, std::size_t from) {
  const auto tail = [from](const auto& all) { return std::vector(all.begin() + static_cast<long>(from), all.end()); };
  return {tail(t.batches), tail(t.positions), tail(t.epochs)};
}

void check_same(const trace& got, const trace& expected) {
  REQUIRE(got.batches.size() == expected.batches.size());
  for (std::size_t b = 0; b < got.batches.size(); ++b) {
    CAPTURE(b);
    REQUIRE(got.batches[b] == expected.batches[b]);
  }
  CHECK(got.positions == expected.positions);
  CHECK(got.epochs == expected.epochs);
}

/// Runs make() mixed and not, with all numbers of workers and from after each batch.
template <class Make>
void check_everywhere(const Make& make, mr::session_options options, std::size_t size, std::size_t stride) {
  const auto mixed = [&] {
    mr::mix_rows_options o = both;
    o.stride = stride == 1 ? 0 : stride;
    return make() | mr::mix_rows<&example::pixels, &example::label>(o);
  };
  const trace expected = slowly_mixed(run_rows(make(), options), size, stride);
  REQUIRE(expected.batches.size() > 6);
  for (const int threads : {0, 1, 4}) {
    options.threads = threads;
    check_same(run_rows(mixed(), options), expected);
  }
  for (std::size_t cut = 1; cut < expected.batches.size(); ++cut) {
    CAPTURE(cut);
    options.threads = cut % 2 == 0 ? 0 : 3;
    options.resume = expected.positions[cut - 1];
    check_same(run_rows(mixed(), options), rest_of(expected, cut));
  }
}

}  // namespace

TEST_CASE("if an epoch is a pass, with and without a remainder, and resumed at its very end") {
  for (const int count : {26, 24, 21})
    for (const bool drops : {true, false}) {
      CAPTURE(count);
      CAPTURE(drops);
      const auto make = [&] {
        return mr::from(numbers_in_shards{{5, 0, 9, count - 14}}, {.seed = seed}) | mr::shuffle({.window = 6}) |
               mr::map(prepare) |
               mr::batch<&example::pixels, &example::label>({.size = 4, .drop_last = drops});
      };
      check_everywhere(make, quiet(2, 3), 4, 1);
      check_everywhere(make, quiet(2, 2), 4, 2);
    }
}

TEST_CASE("if epochs have a fixed number of batches, on several ranks too") {
  const auto make = [&] {
    return mr::from(numbers_in_shards{{5, 3, 9, 14, 2, 7}}, {.seed = seed}) | mr::shuffle({.window = 6}) |
           mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 4});
  };
  mr::session_options options = quiet(2, 3);
  options.epoch_batches = 5;
  options.lanes = 6;
  check_everywhere(make, options, 4, 1);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    options.world = {.rank = rank, .size = 2};
    options.resume.clear();
    const trace expected = slowly_mixed(run_rows(make(), options), 4, 1, *options.world);
    CHECK(mr::parse_position(expected.positions[0]).stride == 2);
    const auto mixed = [&] { return make() | mr::mix_rows<&example::pixels, &example::label>(both); };
    check_same(run_rows(mixed(), options), expected);
    options.resume = expected.positions[6];
    check_same(run_rows(mixed(), options), rest_of(expected, 7));
    mr::session_options alone = options;
    alone.world = {};
    CHECK_THROWS_WITH_AS(run_rows(mixed(), alone), doctest::Contains("the rank (relevant without an index)"),
                         mr::setup_error);
  }
}

TEST_CASE("after stages that keep items back, where a resumed session reads a pass again") {
  const auto make = [&] {
    return mr::from(numbers_in_shards{{5, 3, 9}}, {.seed = seed}) | mr::expand(twice{}) | mr::shuffle({.window = 5}) |
           mr::map(prepare) | mr::batch<&example::pixels, &example::label>({.size = 4, .drop_last = false});
  };
  check_everywhere(make, quiet(2, 3), 4, 1);
}

TEST_CASE("rows of one dimension are mixed by mixup, and not cut") {
  struct sound {
    std::array<float, 21> samples;
    std::uint8_t label;
  };
  const auto flow = [](const mr::mix_rows_options& o) {
    return mr::from(numbers(20), {.seed = seed}) | mr::map([](int n) {
             sound s{};
             s.samples.fill(static_cast<float>(n) / 7);
             s.label = static_cast<std::uint8_t>(n);
             return s;
           }) |
           mr::batch<&sound::samples, &sound::label>({.size = 4}) | mr::mix_rows<&sound::samples, &sound::label>(o);
  };
  mr::session run{flow({.mixup_alpha = 1}), quiet(2)};
  std::size_t rows = 0;
  for (auto& b : run)
    for (std::size_t i = 0; i < b.size(); ++i, ++rows) {
      const auto weight = static_cast<std::uint64_t>(b.lambda()[i] * 65'536);
      const float own = static_cast<float>(b.label_a()[i]) / 7, other = static_cast<float>(b.label_b()[i]) / 7;
      CHECK(b.label_b()[i] == (b.label_a()[i] ^ 1));
      for (const float v : b.get<&sound::samples>()[i].span()) REQUIRE(v == slow_mixes::mixed(own, other, weight));
    }
  CHECK(rows == 20);
  try {
    mr::session cut{flow({.cutmix_alpha = 1}), quiet(2)};
    FAIL("it runs");
  } catch (const mr::setup_error& e) {
    CHECK(std::string(e.what()).find("cutmix cannot cut boxes out of these rows: got rows of shape [21], expected a "
                                     "height and a "
                                     "width of 1 to 65535") != std::string::npos);
  }
  CHECK_THROWS_WITH_AS(mr::session(mr::from(numbers(20)) | mr::map([](int) { return sound{}; }) |
                                       mr::batch<&sound::samples, &sound::label>({.size = 1}) |
                                       mr::mixup<&sound::samples, &sound::label>(),
                                   quiet(0)),
                       doctest::Contains("no row of a batch has a partner to mix with: got a stride of "
                                         "1, expected less than the 1 rows"), mr::setup_error);
}

TEST_CASE("rows whose damage is detected when they are rendered with others leave their partners unchanged") {
  for (const int threads : {0, 1, 4}) {
    auto options = quiet(threads);
    options.on_damage = {.policy = mr::damage::mask, .at_most_share = 1};
    mr::session run{mr::from(numbers(96), {.seed = seed}) |
                        mr::map([](int n) { return late_example{{n}, n}; }) |
                        mr::batch<&late_example::pixels, &late_example::label>({.size = 16}) |
                        mr::cutmix<&late_example::pixels, &late_example::label>({.minmax = {1, 1}}),
                    options};
    int number = 0;
    for (auto& b : run)
      for (std::size_t i = 0; i < b.size(); ++i, ++number) {
        CAPTURE(number);
        const int partner = number ^ 1;
        const bool bad = late_pixels::is_bad(number), mixed = !bad && !late_pixels::is_bad(partner);
        REQUIRE(b.valid()[i] == (bad ? 0 : 1));
        REQUIRE(b.label_a()[i] == (bad ? 0 : number));
        REQUIRE(b.label_b()[i] == (bad ? 0 : mixed ? partner : number));
        REQUIRE(b.lambda()[i] == (mixed ? 0 : 1));   // the box is the full image: rows swap
        REQUIRE(b.get<&late_example::pixels>()[i].span()[0] == (bad ? 0 : mixed ? partner : number));
        REQUIRE(b.row_mixes()[i].partner == (mixed ? static_cast<int>(i ^ 1) : mr::row_mix::none));
      }
    CHECK(number == 96);
  }
}
