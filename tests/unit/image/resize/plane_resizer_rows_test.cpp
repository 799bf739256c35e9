#include <millrace/base/digest.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include "../../../thorough.hpp"
#include "../slow_pictures.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

namespace mr = millrace;

namespace {

template <class Resizer>
void run(Resizer& r, const mr::detail::resize_plan& plan, const mr::image& source, mr::image& out, std::size_t margin) {
  r.start({.plan = plan, .target = {.data = out.data()}});
  const std::size_t left = r.columns().source_begin() - std::min(margin, r.columns().source_begin());
  const std::size_t right = std::min(r.columns().source_end() + margin, source.shape()[1]);
  r.set_source(left, right - left);
  for (std::size_t y = r.rows().source_begin(); r.wants_rows(); ++y) {
    REQUIRE(y < r.rows().source_end());
    std::uint8_t* row = r.next_row();
    for (std::size_t x = left; x < right; ++x, row += 4) {
      for (std::size_t c = 0; c < 3; ++c) row[c] = source(y, x, c);
      row[3] = 0xab;   // the decoder's fourth byte is unused
    }
    r.commit_row();
  }
}

mr::detail::resize_plan random_plan(mr::rng& d, std::size_t height, std::size_t width, bool& large) {
  mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(static_cast<std::int64_t>(height)),
                               .columns = mr::detail::plan_axis(static_cast<std::int64_t>(width))};
  for (mr::detail::plan_axis* a : {&plan.rows, &plan.columns}) {
    if (d.chance(0.7)) {
      const auto size = d.between(1, a->count);
      a->crop(d.between(0, a->count - size), size);
    }
    if (d.chance(0.9)) a->resize(d.between(1, large ? 90 : 20));
    if (d.chance(0.5)) a->flip();
    if (d.chance(0.3)) {
      const auto size = d.between(1, a->count);
      a->crop(d.between(0, a->count - size), size);
    }
  }
  plan.transposed = d.chance(0.3);
  return plan;
}

/// Rows and columns of synthetic pixels, so that no decoder is involved.
std::uint64_t digest_of_fixed_pictures() {
  mr::detail::stream_digest sum;
  mr::rng d({.seed = 77});
  mr::detail::plane_resizer r;
  for (std::uint64_t i = 0; i < 60; ++i) {
    mr::image source({static_cast<std::size_t>(d.between(1, 150)), static_cast<std::size_t>(d.between(1, 150)), 3});
    for (auto& v : source.span()) v = static_cast<std::uint8_t>(d.below(256));
    bool large = i % 2 == 0;
    const auto plan = random_plan(d, source.shape()[0], source.shape()[1], large);
    const auto rows = static_cast<std::size_t>(plan.rows.count), columns = static_cast<std::size_t>(plan.columns.count);
    mr::image out({rows, columns, 3});
    run(r, plan, source, out, 1);
    sum.add(i, mr::detail::digest_bytes(std::as_bytes(out.span())));
  }
  return sum.value();
}

}  // namespace

TEST_CASE("a resize is within one level of real numbers") {
  mr::rng d({.seed = 1});
  mr::detail::plane_resizer r;
  double mean = 0;
  const std::size_t rounds = 150 / stride(3);
  for (std::size_t i = 0; i < rounds; ++i) {
    const auto height = static_cast<std::size_t>(d.between(1, i % 10 == 0 ? 900 : 120));
    const auto width = static_cast<std::size_t>(d.between(1, i % 10 == 5 ? 900 : 120));
    mr::image source = slow::photo(height, width, 3, i);
    if (i % 4 == 0)
      for (auto& v : source.span()) v = d.chance(0.5) ? 255 : 0;
    const auto target_height = static_cast<std::size_t>(d.between(1, 60)),
               target_width = static_cast<std::size_t>(d.between(1, 60));
    mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(static_cast<std::int64_t>(height)),
                                 .columns = mr::detail::plan_axis(static_cast<std::int64_t>(width))};
    plan.rows.resize(static_cast<std::int64_t>(target_height));
    plan.columns.resize(static_cast<std::int64_t>(target_width));
    mr::image out({target_height, target_width, 3});
    run(r, plan, source, out, 0);
    const auto gap = slow::compare(out, slow::resize(slow::real(source), target_height, target_width));
    CAPTURE(height);
    CAPTURE(width);
    CAPTURE(target_height);
    CAPTURE(target_width);
    CHECK(gap.max <= 1);
    mean += gap.mean / static_cast<double>(rounds);
  }
  CHECK(mean < 0.02);
}

TEST_CASE("no resize leaves every pixel unchanged") {
  const auto source = slow::photo(19, 23, 3, 5);
  mr::detail::plane_resizer r;
  for (const bool flipped : {false, true}) {
    mr::detail::resize_plan plan{.rows = mr::detail::plan_axis(19), .columns = mr::detail::plan_axis(23)};
    plan.rows.crop(3, 11);
    plan.columns.crop(5, 17);
    if (flipped) plan.columns.flip();
    mr::image out({11, 17, 3});
    run(r, plan, source, out, 2);
    const auto cropped = slow::crop(source, {.left = 5, .top = 3, .width = 17, .height = 11});
    const auto expected = flipped ? slow::flip(cropped) : cropped;
    CHECK(std::equal(out.span().begin(), out.span().end(), expected.span().begin()));
  }
}

#ifdef __x86_64__
TEST_CASE("weights are the same from every processor's code") {
  if (!mr::detail::cpu_has_word_layer()) return;
  mr::rng d({.seed = 12});
  mr::detail::tap_table slow, fast;
  const std::size_t axes = 3'000 / stride(3);
  std::size_t few = 0;
  for (std::size_t i = 0; i < axes; ++i) {
    mr::detail::plan_axis a(d.between(1, d.chance(0.1) ? 65'535 : 700));
    for (int k = 0; k < d.between(1, 3); ++k) {
      const auto size = d.between(1, a.count);
      a.crop(d.between(0, a.count - size), size);
      if (d.chance(0.8)) a.resize(d.between(1, 400));
      if (d.chance(0.5)) a.flip();
    }
    slow.build(a);
    mr::detail::avx2::tap_weights::build(fast, a);
    REQUIRE(fast.outputs() == slow.outputs());
    REQUIRE(fast.max_count() == slow.max_count());
    for (std::size_t o = 0; o < slow.outputs(); ++o) {
      REQUIRE(fast.first(o) == slow.first(o));
      REQUIRE(fast.count(o) == slow.count(o));
      const auto places = std::max(slow.count(o), mr::detail::tap_table::padded_count);
      REQUIRE(std::equal(slow.weights(o), slow.weights(o) + places, fast.weights(o)));
    }
    few += slow.max_count() <= mr::detail::tap_table::padded_count;
  }
  CHECK(few > axes / 3);
  CHECK(few < axes - axes / 30);
}
#endif

TEST_CASE("weights of every output sum to one, are never negative and stay inside the clip; their span is known "
          "before") {
  mr::rng d({.seed = 2});
  mr::detail::tap_table t;
  for (int i = 0; i < 400; ++i) {
    mr::detail::plan_axis a(d.between(1, 70'000 >> d.below(16)));
    for (int k = 0; k < 2; ++k) {
      const auto size = d.between(1, a.count);
      a.crop(d.between(0, a.count - size), size);
      a.resize(d.between(1, 600));
    }
    if (d.chance(0.3)) a = a.scaled(std::int64_t{1} << d.below(3));
    t.build(a);
    REQUIRE(t.outputs() == static_cast<std::size_t>(a.count));
    REQUIRE(mr::detail::source_span_of(a).begin == t.source_begin());
    REQUIRE(mr::detail::source_span_of(a).end == t.source_end());
    for (std::size_t o = 0; o < t.outputs(); ++o) {
      int sum = 0;
      for (std::size_t k = 0; k < t.count(o); ++k) {
        REQUIRE(t.weights(o)[k] >= 0);
        sum += t.weights(o)[k];
      }
      REQUIRE(sum == 1 << mr::detail::tap_table::weight_bits);
      REQUIRE(t.first(o) >= static_cast<std::size_t>(a.clip_begin));
      REQUIRE(t.end(o) <= static_cast<std::size_t>(a.clip_end));
      if (o > 0) REQUIRE(t.first(o) >= t.first(o - 1));
      if (o > 0) REQUIRE(t.end(o) >= t.end(o - 1));
    }
  }
}

#if defined __x86_64__ || defined __aarch64__

using kernels = mr::detail::vector_plane_kernels;

namespace {

/// Memory whose end is the end of the readable range.
class guarded_pages {
 public:
  guarded_pages() {
    all_ = ::mmap(nullptr, room_bytes + page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(all_ != MAP_FAILED);
    REQUIRE(::mprotect(static_cast<std::byte*>(all_) + room_bytes, page_bytes_, PROT_NONE) == 0);
  }
  guarded_pages(const guarded_pages&) = delete;
  guarded_pages& operator=(const guarded_pages&) = delete;
  ~guarded_pages() { ::munmap(all_, room_bytes + page_bytes_); }

  template <class T>
  T* last(std::size_t count) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(all_) + room_bytes - count * sizeof(T));
  }

 private:
  static constexpr std::size_t room_bytes = std::size_t{64} << 10;
  const std::size_t page_bytes_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* all_ = nullptr;
};

template <class Columns>
long sum_of_columns(const mr::detail::tap_column_plan& plan, const void* row) {
  Columns columns;
  columns.build(plan);
  std::vector<std::int16_t> out(4 * columns.padded());
  const auto* bytes = static_cast<const std::uint8_t*>(row);
  if (plan.wide) columns.run_wide({.row = static_cast<const std::int16_t*>(row), .out = out.data()});
  else columns.run({.rows = {bytes, bytes, bytes, bytes}, .out = out.data(), .stride = columns.padded()});
  return std::accumulate(out.begin(), out.end(), 0L);
}

}  // namespace

TEST_CASE("a row has the same bytes whether it is stored or streamed, with three-way logic and in wide registers") {
  if (!mr::detail::cpu_has_word_layer()) return;
  constexpr std::size_t columns = 224;
  mr::rng d({.seed = 6});
  std::vector<std::int16_t> rows(3 * columns * mr::detail::max_row_taps);
  for (auto& v : rows) v = static_cast<std::int16_t>(d.below(255 * 128 + 1));
  alignas(32) std::array<std::uint8_t, 3 * columns> stored{}, streamed{};
  for (std::size_t count = 1; count <= mr::detail::max_row_taps; ++count) {
    mr::detail::row_taps taps{.count = count, .plane_stride = columns};
    for (std::size_t k = 0; k < count; ++k) {
      taps.rows[k] = rows.data() + 3 * columns * k;
      taps.weights[k] = static_cast<std::int16_t>((1 << mr::detail::tap_table::weight_bits) / count);
    }
    CAPTURE(count);
    kernels::plane_rows::blend_rgb(taps, {.bytes = stored.data(), .columns = columns});
    for (const bool logic : {false, true}) {
      if (logic && !mr::detail::cpu_has_three_way_logic()) continue;
      streamed.fill(0);
      kernels::plane_rows::blend_rgb(taps, {.bytes = streamed.data(), .columns = columns, .streams = true,
                                      .three_way_logic = logic});
      kernels::plane_numbers::finish_streaming();
      CHECK(stored == streamed);
    }
    for (const bool streams : {false, true}) {
      if (!mr::detail::cpu_has_wide_vectors()) continue;
      streamed.fill(0);
      kernels::plane_rows::blend_rgb(taps, {.bytes = streamed.data(), .columns = columns, .streams = streams,
                                      .wide_vectors = true});
      kernels::plane_numbers::finish_streaming();
      CHECK(stored == streamed);
    }
  }
}

TEST_CASE("vector kernels read no further than the slack after a row, however much it is shrunk") {
  if (!mr::detail::cpu_has_word_layer()) return;
  const guarded_pages pages;
  mr::rng d({.seed = 4});
  for (int i = 0; i < 2000; ++i) {
    const auto width = static_cast<std::int64_t>(d.between(1, 3000));
    const auto target = static_cast<std::int64_t>(d.between(1, 60));
    mr::detail::plan_axis axis(width);
    axis.resize(target);
    const bool bicubic = d.chance(0.4);
    if (bicubic) axis.filter = mr::resize_filter::bicubic;
    mr::detail::tap_table taps;
    taps.build(axis);
    const mr::detail::tap_column_plan plan{.taps = taps, .flipped = d.chance(0.5), .wide = !bicubic && d.chance(0.5)};
    const auto count = static_cast<std::size_t>(width) * (plan.wide ? 2 : 1);
    std::uint8_t* row = pages.last<std::uint8_t>(count + mr::detail::guarded_resize_plane::slack_bytes);
    for (std::size_t k = 0; k < count; ++k) row[k] = static_cast<std::uint8_t>(plan.wide && k % 2 ? 0 : d.below(256));
    const long expected = sum_of_columns<mr::detail::portable_tap_columns>(plan, row);
    REQUIRE(sum_of_columns<kernels::tap_columns>(plan, row) == expected);
    if (!mr::detail::cpu_has_wide_vectors()) continue;
    REQUIRE(sum_of_columns<kernels::tap_columns>({.taps = taps, .flipped = plan.flipped, .wide = plan.wide,
                                              .wide_vectors = true}, row) == expected);
  }
}
#endif

TEST_CASE("plain and vector kernels compute the same bits") {
  mr::rng d({.seed = 3});
  mr::detail::basic_plane_resizer<mr::detail::portable_plane_kernels> plain;
  mr::detail::plane_resizer native, narrow(false);
  for (int i = 0; i < 300; ++i) {
    mr::image source({static_cast<std::size_t>(d.between(1, 200)), static_cast<std::size_t>(d.between(1, 200)), 3});
    for (auto& v : source.span()) v = static_cast<std::uint8_t>(d.below(256));
    bool large = d.chance(0.5);
    const auto plan = random_plan(d, source.shape()[0], source.shape()[1], large);
    mr::image one({static_cast<std::size_t>(plan.rows.count), static_cast<std::size_t>(plan.columns.count), 3});
    mr::image two(one.shape());
    run(plain, plan, source, one, 1);
    run(native, plan, source, two, 3);
    REQUIRE(std::equal(one.span().begin(), one.span().end(), two.span().begin()));
    run(narrow, plan, source, two, 3);
    REQUIRE(std::equal(one.span().begin(), one.span().end(), two.span().begin()));
  }
}

TEST_CASE("the pixels of fixed images are frozen, on every compiler and flag") {
  CHECK(digest_of_fixed_pictures() == 4150225980975120248U);
}
