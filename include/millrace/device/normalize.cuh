// Normalizes pixels on the GPU, from u8 to f32, f16 or bf16. This is the kernel version of normalize.hpp, for .cu
// files.
//
//   mr::normalize(b.get<&example::pixels>(), numbers, {.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225},
//                                                      .layout = mr::image_layout::nchw}, b.stream());
//
// normalize_options.hpp describes shapes, units, the formula and the errors for options. The bits equal those of the
// host version. With nvcc's -use_fast_math, results below 2^-126 become 0. Both views must be in the memory of the
// current device. The call queues one kernel (several for more than 2^31 units of work) and returns. The views must
// stay valid until the stream has completed the work.
// Nothing is allocated. The first call with a type and layout loads a kernel, which may require milliseconds and wait
// for the device. If that matters, call the function once before the training loop.
// The kernel is fastest if each image's numbers begin at a multiple of 16 bytes and its pixels at a multiple of 8.
// Other alignments are also correct.
// Errors: setup_error if a view is in other memory; io_error if a launch fails. Threads: any.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/device/kernel.cuh>
#include <millrace/device/normalize_options.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Divides the work. One unit consists of `width` numbers, which one store of 16 bytes writes. The threads of a warp
/// write neighboring units. Each thread loads all of its values before its first store, so that the loads do not wait
/// for each other.
template <class T>
struct normalize_geometry {
  static constexpr unsigned width = 16 / sizeof(T), threads = 256, units_of_thread = 16 / width;
  static constexpr unsigned units_of_block = threads * units_of_thread;

  static unsigned blocks(std::size_t units) noexcept {
    return static_cast<unsigned>((units + units_of_block - 1) / units_of_block);
  }

  template <class Body>
  MILLRACE_BOTH_SIDES static void run(const Body& body, unsigned block, unsigned thread) {
    typename Body::pixels loaded[units_of_thread];
    const unsigned first = block * units_of_block + thread;
    // The loop must be unrolled, because a loop that indexes `loaded` would place the array in memory instead of
    // registers.
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned k = 0; k < units_of_thread; ++k)
      if (first + k * threads < body.units) loaded[k] = body.load(first + k * threads);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (unsigned k = 0; k < units_of_thread; ++k)
      if (first + k * threads < body.units) body.store(first + k * threads, loaded[k]);
  }
};

/// Processes the complete batch as one sequence of elements: the head up to the first aligned address, aligned stores,
/// the rest.
template <class T, unsigned Channels>
struct interleaved_normalizer {
  static constexpr unsigned width = normalize_geometry<T>::width, threads = normalize_geometry<T>::threads;
  using pixels = pack<std::uint8_t, width>;

  const std::uint8_t* in;
  T* out;
  std::size_t count;
  unsigned head, units;
  bool in_aligned;           // whether the input after the head is aligned
  float scale[4], bias[4];   // of the channels from the first aligned element on

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    team.each([&](unsigned t) {
      if (team.block() == 0) edges(t);
      normalize_geometry<T>::run(*this, team.block(), t);
    });
  }

  MILLRACE_BOTH_SIDES pixels load(unsigned unit) const {
    const std::uint8_t* const from = in + head + std::size_t{unit} * width;
    if (in_aligned) return load_pack<width>(from);
    pixels loaded;
    for (unsigned j = 0; j < width; ++j) loaded.values[j] = from[j];
    return loaded;
  }

  MILLRACE_BOTH_SIDES void store(unsigned unit, const pixels& loaded) const {
    const unsigned rotation = unit * (width % Channels) % Channels;   // 0 except with three channels
    float scales[Channels], biases[Channels];
    for (unsigned c = 0; c < Channels; ++c) {
      scales[c] = rotated(scale, c, rotation);
      biases[c] = rotated(bias, c, rotation);
    }
    pack<T, width> results;
    for (unsigned j = 0; j < width; ++j)
      results.values[j] = normalize_job<T>::normalized(loaded.values[j], scales[j % Channels], biases[j % Channels]);
    store_pack(out + head + std::size_t{unit} * width, results);
  }

 private:
  /// Writes the head and the rest, each of which is shorter than one store.
  MILLRACE_BOTH_SIDES void edges(unsigned t) const {
    if (t < head) one(t);
    const std::size_t rest = head + std::size_t{units} * width;
    if (rest + t < count && t < width) one(rest + t);
  }
  MILLRACE_BOTH_SIDES void one(std::size_t i) const {
    const auto c = static_cast<unsigned>((i + Channels * width - head) % Channels);
    out[i] = normalize_job<T>::normalized(in[i], scale[c], bias[c]);
  }

  /// Returns factors[(c + rotation) % Channels] by selecting values, because indexing would be slow.
  MILLRACE_BOTH_SIDES static float rotated(const float (&factors)[4], unsigned c, unsigned rotation) {
    float factor = factors[c];
    if constexpr (width % Channels != 0)
      for (unsigned r = 1; r < Channels; ++r) {
        float other = factors[(c + r) % Channels];
#ifdef __CUDA_ARCH__
        asm("" : "+f"(factor), "+f"(other));   // otherwise the compiler selects an address, and loads from it
#endif
        factor = rotation == r ? other : factor;
      }
    return factor;
  }
};

/// Writes planes. A thread loads `Width` neighboring pixels and performs one store into each plane.
template <class T, unsigned Channels, unsigned Width>
struct planar_normalizer {
  static constexpr unsigned threads = normalize_geometry<T>::threads;
  struct pixels {
    pack<std::uint8_t, Width> pieces[Channels];   // in pieces of Width bytes, still interleaved
  };

  const std::uint8_t* in;
  T* out;
  std::size_t plane;                // number of pixels in one image
  unsigned units_of_image, units;   // one unit is Width pixels
  float scale[4], bias[4];

  MILLRACE_BOTH_SIDES void operator()(const auto& team) const {
    team.each([&](unsigned t) { normalize_geometry<T>::run(*this, team.block(), t); });
  }

  MILLRACE_BOTH_SIDES pixels load(unsigned unit) const {
    // Images are contiguous, therefore units are contiguous, too.
    const std::uint8_t* const from = in + std::size_t{unit} * Width * Channels;
    pixels loaded;
    for (unsigned c = 0; c < Channels; ++c) loaded.pieces[c] = load_pack<Width>(from + c * Width);
    return loaded;
  }

  MILLRACE_BOTH_SIDES void store(unsigned unit, const pixels& loaded) const {
    const std::size_t image = unit / units_of_image, pixel = std::size_t{unit % units_of_image} * Width;
    T* const to = out + image * Channels * plane + pixel;
    for (unsigned c = 0; c < Channels; ++c) {
      pack<T, Width> results;
      for (unsigned p = 0; p < Width; ++p) {
        const unsigned i = p * Channels + c;
        results.values[p] = normalize_job<T>::normalized(loaded.pieces[i / Width].values[i % Width], scale[c], bias[c]);
      }
      store_pack(to + c * plane, results);
    }
  }
};

/// Units are counted in 32 bits, because a GPU divides 32-bit numbers faster. A batch with more units is split.
inline constexpr std::size_t max_units = std::size_t{1} << 31;

template <class T, unsigned Channels>
void launch_interleaved(const normalize_job<T>& job, stream_view stream) {
  constexpr std::size_t width = normalize_geometry<T>::width;
  const std::size_t count = job.images * job.pixels * job.channels;
  for (std::size_t done = 0; done < count; done += max_units * width) {
    interleaved_normalizer<T, Channels> body{};
    body.in = job.in + done;
    body.out = job.out + done;
    body.count = std::min(count - done, max_units * width);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(body.out) % 16 / sizeof(T);
    body.head = static_cast<unsigned>(std::min(past == 0 ? 0 : width - past, body.count));
    body.units = static_cast<unsigned>((body.count - body.head) / width);
    body.in_aligned = is_aligned(body.in + body.head, width);
    for (unsigned c = 0; c < Channels; ++c) {
      body.scale[c] = job.scale[(done + body.head + c) % Channels];
      body.bias[c] = job.bias[(done + body.head + c) % Channels];
    }
    launch(body, {.blocks = std::max(1U, normalize_geometry<T>::blocks(body.units)), .stream = stream});
  }
}

template <class T, unsigned Channels, unsigned Width>
void launch_planes(const normalize_job<T>& job, stream_view stream) {
  const std::size_t units_of_image = job.pixels / Width;
  if (units_of_image == 0) return;
  const std::size_t at_once = max_units / units_of_image;
  for (std::size_t done = 0; done < job.images; done += at_once) {
    const std::size_t images = std::min(job.images - done, at_once);
    planar_normalizer<T, Channels, Width> body{};
    body.in = job.in + done * job.pixels * Channels;
    body.out = job.out + done * job.pixels * Channels;
    body.plane = job.pixels;
    body.units_of_image = static_cast<unsigned>(units_of_image);
    body.units = static_cast<unsigned>(images * units_of_image);
    std::copy_n(job.scale, 4, body.scale);
    std::copy_n(job.bias, 4, body.bias);
    launch(body, {.blocks = normalize_geometry<T>::blocks(body.units), .stream = stream});
  }
}

template <class T, unsigned Channels>
void launch_normalize(const normalize_job<T>& job, stream_view stream) {
  constexpr unsigned width = normalize_geometry<T>::width;
  if (!job.planar) return launch_interleaved<T, Channels>(job, stream);
  if constexpr (Channels > 1) {
    const bool aligned = job.pixels % width == 0 && is_aligned(job.out, 16) && is_aligned(job.in, width);
    aligned ? launch_planes<T, Channels, width>(job, stream) : launch_planes<T, Channels, 1>(job, stream);
  }
}

}   // namespace detail

/// Queues the normalization of pixels, [B, H, W, 1 to 4] u8. The numbers are [B, H, W, C] or [B, C, H, W].
/// Throws setup_error if the shapes do not match, an option is invalid, or a view is in host memory; io_error if a
/// launch fails.
template <detail::training_element T>
void normalize(const tensor_view<const std::uint8_t, 4>& pixels, const tensor_view<T, 4>& numbers,
               const normalize_options& options, stream_view stream) {
  const auto job = detail::plan_normalize(pixels, numbers, options);
  detail::check_on_device(pixels, "normalize.hpp");
  detail::check_on_device(numbers, "normalize.hpp");
  if (job.pixels > detail::max_units)
    throw setup_error("the images for normalize are too large: got " + std::to_string(job.pixels) + " pixels",
                      "Use images of at most 2147483648 pixels");
  switch (job.channels) {
    case 1: return detail::launch_normalize<T, 1>(job, stream);
    case 2: return detail::launch_normalize<T, 2>(job, stream);
    case 3: return detail::launch_normalize<T, 3>(job, stream);
    default: return detail::launch_normalize<T, 4>(job, stream);
  }
}

}}   // namespace millrace
