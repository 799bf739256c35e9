#include "../../kernels_on_host.hpp"

#include <millrace/base/random.hpp>
#include <millrace/device/normalize.cuh>
#include <millrace/device/normalize.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace mr = millrace;

namespace {

constexpr std::size_t guard_bytes = 64;
constexpr int untouched = 0x5a;

/// A stream that belongs to the test; its queued work has run after wait().
struct own_stream {
  cudaStream_t handle = nullptr;

  own_stream() { REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { cudaStreamDestroy(handle); }
  void wait() const { REQUIRE(cudaStreamSynchronize(handle) == cudaSuccess); }
};

/// Pixels and room for their numbers, each `shift` elements past an aligned address, with guards around the numbers.
template <class T>
struct example {
  static constexpr std::size_t guard = guard_bytes / sizeof(T);
  std::vector<std::uint8_t> in;
  std::vector<T> output, expected;
  mr::tensor_view<const std::uint8_t, 4> pixels;
  mr::tensor_view<T, 4> numbers;
  mr::normalize_options options;

  struct form {
    std::array<std::size_t, 4> shape{};
    bool planar = false;
    std::size_t in_shift = 0, out_shift = 0;
  };

  example(const form& f, mr::rng& d) {
    const std::size_t count = f.shape[0] * f.shape[1] * f.shape[2] * f.shape[3];
    in.resize(f.in_shift + count);
    for (auto& v : in) v = static_cast<std::uint8_t>(d.below(256));
    output.resize(guard + f.out_shift + count + guard);
    std::memset(static_cast<void*>(output.data()), untouched, output.size() * sizeof(T));
    expected = output;
    pixels = {.data = in.data() + f.in_shift, .shape = f.shape};
    numbers = {.data = expected.data() + guard + f.out_shift,
               .shape = f.planar ? std::array{f.shape[0], f.shape[3], f.shape[1], f.shape[2]} : f.shape};
    options.layout = f.planar ? mr::image_layout::nchw : mr::image_layout::nhwc;
    for (std::size_t c = 0; c < 4; ++c) {
      options.mean[c] = d.uniform(0.3, 0.6);
      options.std[c] = d.uniform(0.1, 0.4);
    }
    mr::detail::table_normalizer::run(mr::detail::plan_normalize(pixels, numbers, options));
    numbers.data = output.data() + guard + f.out_shift;
    pixels.memory = numbers.memory = mr::memory_kind::device;
  }

  bool agrees() const { return std::memcmp(output.data(), expected.data(), output.size() * sizeof(T)) == 0; }
};

}  // namespace

TEST_CASE_TEMPLATE("the kernel writes the bits of the host's loop and touches nothing else", T, float, mr::f16,
                   mr::bf16) {
  const own_stream stream;
  mr::rng d({.seed = 5});
  for (std::size_t channels = 1; channels <= 4; ++channels)
    for (const bool planar : {false, true})
      for (std::size_t width = 0; width < 34; ++width)
        for (const std::size_t shift : {0, 1, 3, 8}) {
          const std::size_t in_shift = width % 2 == 0 ? shift : 0;   // both aligned, and either one
          const std::size_t out_shift = width % 3 == 0 ? 0 : shift;
          example<T> e({.shape = {3, width % 5 + 1, width, channels}, .planar = planar,
                        .in_shift = in_shift, .out_shift = out_shift}, d);
          mr::normalize(e.pixels, e.numbers, e.options, stream.handle);
          stream.wait();
          CAPTURE(channels);
          CAPTURE(planar);
          CAPTURE(width);
          CAPTURE(shift);
          REQUIRE(e.agrees());
        }
}

TEST_CASE_TEMPLATE("the same over many blocks", T, float, mr::f16, mr::bf16) {
  const own_stream stream;
  mr::rng d({.seed = 6});
  for (const bool planar : {false, true})
    for (const std::size_t height : {64, 61}) {   // aligned planes and unaligned ones
      example<T> e({.shape = {5, height, 61, 3}, .planar = planar, .in_shift = 0, .out_shift = 0}, d);
      mr::normalize(e.pixels, e.numbers, e.options, stream.handle);
      stream.wait();
      CHECK(e.agrees());
    }
}

TEST_CASE("the kernel reads nothing outside the pixels") {   // checked by AddressSanitizer: the block ends there
  const own_stream stream;
  mr::rng d({.seed = 7});
  for (const bool planar : {false, true})
    for (std::size_t width = 1; width < 40; ++width) {
      example<float> e({.shape = {1, 1, width, 3}, .planar = planar, .in_shift = 0, .out_shift = 0}, d);
      auto exact = std::make_unique<std::uint8_t[]>(e.in.size());
      std::memcpy(exact.get(), e.in.data(), e.in.size());
      e.pixels.data = exact.get();
      mr::normalize(e.pixels, e.numbers, e.options, stream.handle);
      stream.wait();
      REQUIRE(e.agrees());
    }
}

TEST_CASE("memory of the host, shapes that differ and a std of zero are refused") {
  const own_stream stream;
  mr::rng d({.seed = 8});
  example<float> e({.shape = {1, 2, 2, 3}, .planar = false, .in_shift = 0, .out_shift = 0}, d);
  auto on_host = e.pixels;
  on_host.memory = mr::memory_kind::host;
  CHECK_THROWS_AS(mr::normalize(on_host, e.numbers, e.options, stream.handle), mr::setup_error);
  auto smaller = e.numbers;
  smaller.shape[2] = 1;
  CHECK_THROWS_AS(mr::normalize(e.pixels, smaller, e.options, stream.handle), mr::setup_error);
  e.options.std[1] = 0;
  CHECK_THROWS_AS(mr::normalize(e.pixels, e.numbers, e.options, stream.handle), mr::setup_error);
}

TEST_CASE("views on another GPU than the current one are rejected by name") {
  fake_cuda::reset({.devices = 2});
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  void *pixels = nullptr, *numbers = nullptr;
  REQUIRE(cudaMalloc(&pixels, 12) == cudaSuccess);
  REQUIRE(cudaMalloc(&numbers, 12 * sizeof(float)) == cudaSuccess);
  const mr::tensor_view<const std::uint8_t, 4> in{.data = static_cast<const std::uint8_t*>(pixels),
                                                  .shape = {1, 2, 2, 3}, .memory = mr::memory_kind::device};
  const mr::tensor_view<float, 4> out{.data = static_cast<float*>(numbers), .shape = {1, 2, 2, 3},
                                      .memory = mr::memory_kind::device, .name = "numbers"};
  CHECK_NOTHROW(mr::normalize(in, out, {}, {}));
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK_THROWS_WITH_AS(mr::normalize(in, out, {}, {}), doctest::Contains("is in the memory of GPU 1"), mr::setup_error);
  fake_cuda::reset();
}

TEST_CASE("the kernel's threads write the bits of the host's loop and do not race") {
  const own_stream stream;
  mr::rng d({.seed = 9});
  const kernels_run_in_threads guard(warp_order::together);
  for (const bool planar : {false, true}) {
    example<mr::f16> e({.shape = {2, 33, 31, 3}, .planar = planar, .in_shift = 1, .out_shift = 3}, d);
    mr::normalize(e.pixels, e.numbers, e.options, stream.handle);
    stream.wait();
    CHECK(e.agrees());
  }
}
