// Applies a list of photometric operations to pixels with the fastest kernels that this CPU supports.
//
//   auto& runner = scratch.get<mr::detail::photometric_runner>();
//   runner.run(ops, {.data = row.data(), .width = 224, .height = 224});
//
// The result does not depend on the CPU. basic_photometric_runner describes the method.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/color/box_blur.hpp>
#include <millrace/image/color/byte_table.hpp>
#include <millrace/image/color/gaussian_blur.hpp>
#include <millrace/image/color/hue_kernels.hpp>
#include <millrace/image/color/mix_kernels.hpp>
#include <millrace/image/color/photometric_op.hpp>
#include <millrace/image/color/pixel_kernels.hpp>
#include <millrace/image/color/rgb_pixels.hpp>
#include <millrace/image/color/sharpen_kernels.hpp>
#include <millrace/image/color/vector_kernels.hpp>
#include <millrace/image/warp/vector_warping.hpp>
#include <millrace/image/warp/warp.hpp>
#include <millrace/simd/cpu_features.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/simd/precise_begin.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Applies a list of photometric operations to pixels, in place.
//
//   mr::detail::basic_photometric_runner<mr::detail::portable_photometric_kernels> runner;   // reused for all images
//   runner.run(ops, pixels);
//
// Some operations map each byte separately, for example brightness. The runner combines consecutive operations of this
// kind into one table of 256 bytes per channel. It applies these tables when a later operation needs the pixels, or at
// the end of the list. The result is bit-identical to running one operation after another.
// Errors: throws std::bad_alloc. Threads: not thread-safe; one thread at a time.

struct portable_photometric_kernels {
  using pixels = portable_pixels;
  using hues = portable_hues;
  using sharpening = portable_sharpening;
  using boxes = portable_boxes;
  using gaussian = portable_gaussian;
  using warping = portable_warping;
  using mixing = portable_mixing;
};

template <class Kernels>
class basic_photometric_runner {
 public:
  void run(std::span<const photometric_op> ops, const rgb_pixels& p) {
    if (p.count() == 0) return;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != photometric_kind::mix) {
        run_one(ops[i], p);
        continue;
      }
      const auto parts = static_cast<std::size_t>(ops[i].numbers[1]);
      run_mix(ops.subspan(i, parts + 1), p);
      i += parts;
    }
    finish(p);
  }

 private:
  using pixel_kernels = typename Kernels::pixels;
  static constexpr std::size_t part_pixels = 4'096;   // 12 KiB, which stay in the first-level cache

  /// Maps the pixels through the tables, part by part. After each part, calls work(data, pixels).
  template <class Work>
  void in_parts(const rgb_pixels& p, const Work& work) {
    for (std::size_t begin = 0; begin < p.count(); begin += part_pixels) {
      std::uint8_t* const data = p.data + 3 * begin;
      const std::size_t pixels = std::min(part_pixels, p.count() - begin);
      if (!tables_.empty()) pixel_kernels::apply(tables_, data, pixels);
      work(data, pixels);
    }
    tables_.clear();
  }

  void finish(const rgb_pixels& p) {
    if (!tables_.empty()) in_parts(p, [](std::uint8_t*, std::size_t) {});
  }

  void run_one(const photometric_op& op, const rgb_pixels& p) {
    const auto factor = static_cast<float>(op.value);
    switch (op.kind) {
      case photometric_kind::brightness: return tables_.then(blend_table(0, factor));
      case photometric_kind::invert: return tables_.then(invert_table());
      case photometric_kind::posterize: return tables_.then(posterize_table(op.numbers[0]));
      case photometric_kind::solarize: return tables_.then(solarize_table(op.value));
      case photometric_kind::solarize_add: return tables_.then(solarize_add_table(op.numbers[0]));
      case photometric_kind::contrast: return run_contrast(factor, p);
      case photometric_kind::autocontrast: return run_autocontrast(p);
      case photometric_kind::equalize: return run_equalize(p);
      case photometric_kind::grayscale:
        return in_parts(p, [](std::uint8_t* data, std::size_t n) { pixel_kernels::make_gray(data, n); });
      case photometric_kind::saturation:
        if (factor == 1) return;
        return in_parts(p, [&](std::uint8_t* data, std::size_t n) { pixel_kernels::saturate(data, n, factor); });
      case photometric_kind::hue: {
        const int by = static_cast<int>(op.value * 255) & 255;
        return in_parts(p, [&](std::uint8_t* data, std::size_t n) { Kernels::hues::shift(data, n, by); });
      }
      default: finish(p); return run_on_all(op, p);
    }
  }

  /// Runs an operation that requires the complete image.
  void run_on_all(const photometric_op& op, const rgb_pixels& p) {
    const affine_size size{.width = p.width, .height = p.height};
    switch (op.kind) {
      case photometric_kind::sharpness:
        if (op.value == 1) return;
        return sharpen<typename Kernels::sharpening>(p, static_cast<float>(op.value), memory_);
      case photometric_kind::pillow_blur: return box_blur_.run(p, box_weights_of(op.value));
      case photometric_kind::torchvision_blur:
        return gaussian_blur_.run(p, gaussian_weights_of(static_cast<std::size_t>(op.numbers[0]), op.value));
      case photometric_kind::rotate: return warp_.run(p, affine_rotation(op.value, size), op.filter, op.fill);
      case photometric_kind::shear_x: return warp_.run(p, shear_x_of(op.value), op.filter, op.fill);
      case photometric_kind::shear_y: return warp_.run(p, shear_y_of(op.value), op.filter, op.fill);
      case photometric_kind::translate: return warp_.run(p, translation_of(op.value, op.second), op.filter, op.fill);
      case photometric_kind::erase: return erase(op, p);
      default: return;
    }
  }

  void run_contrast(float factor, const rgb_pixels& p) {
    if (factor == 1) return;
    std::uint64_t sum = 0;
    in_parts(p, [&](std::uint8_t* data, std::size_t n) { sum += pixel_kernels::luma_sum(data, n); });
    tables_.then(blend_table(static_cast<int>((2 * sum + p.count()) / (2 * p.count())), factor));
  }

  void run_autocontrast(const rgb_pixels& p) {
    std::array<level_range, 3> all;
    in_parts(p, [&](std::uint8_t* data, std::size_t n) {
      const std::array<level_range, 3> part = pixel_kernels::ranges(data, n);
      for (std::size_t c = 0; c < 3; ++c) {
        all[c].low = std::min(all[c].low, part[c].low);
        all[c].high = std::max(all[c].high, part[c].high);
      }
    });
    tables_.then(autocontrast_table(all[0].low, all[0].high), autocontrast_table(all[1].low, all[1].high),
                 autocontrast_table(all[2].low, all[2].high));
  }

  void run_equalize(const rgb_pixels& p) {
    const std::array<byte_counts, 3> counts = pixel_kernels::count(p.data, p.count());
    const auto table = [&](std::size_t c) { return equalize_table(histogram_after(counts[c], tables_[c])); };
    tables_.then(table(0), table(1), table(2));
  }

  static void erase(const photometric_op& op, const rgb_pixels& p) noexcept {
    const auto clipped = [](std::int32_t at, std::size_t limit) {
      return std::min(static_cast<std::size_t>(std::max(at, 0)), limit);
    };
    const std::size_t left = clipped(op.numbers[0], p.width), right = clipped(op.numbers[0] + op.numbers[2], p.width);
    const std::size_t top = clipped(op.numbers[1], p.height), bottom = clipped(op.numbers[1] + op.numbers[3], p.height);
    const std::size_t columns = std::max(left, right) - left;
    for (std::size_t y = top; y < bottom; ++y) fill_pixels(p.row(y) + 3 * left, columns, op.fill);
  }

  /// Runs a mix. ops[0] describes the mix. The chains follow. Each chain is an entry that describes the chain, followed
  /// by the operations of the chain.
  void run_mix(std::span<const photometric_op> ops, const rgb_pixels& p) {
    finish(p);
    const auto chains = static_cast<std::size_t>(ops[0].numbers[0]);
    if (chains_.size() < chains) chains_.resize(chains);
    std::vector<mixed_bytes> parts{{.data = p.data, .weight = ops[0].numbers[2]}};
    std::size_t at = 1;
    for (std::size_t k = 0; k < chains; ++k) {
      const auto count = static_cast<std::size_t>(ops[at].numbers[0]);
      std::vector<std::uint8_t>& pixels = chains_[k];
      pixels.assign(p.data, p.data + p.bytes());
      const rgb_pixels own{.data = pixels.data(), .width = p.width, .height = p.height};
      for (const photometric_op& op : ops.subspan(at + 1, count)) run_one(op, own);
      finish(own);
      parts.push_back({.data = pixels.data(), .weight = ops[at].numbers[1]});
      at += count + 1;
    }
    Kernels::mixing::run(parts, p.bytes(), p.data);
  }

  pending_byte_tables tables_;
  std::vector<std::uint8_t> memory_;
  box_blur<typename Kernels::boxes> box_blur_;
  gaussian_blur<typename Kernels::gaussian> gaussian_blur_;
  warp<typename Kernels::warping> warp_;
  std::vector<std::vector<std::uint8_t>> chains_;
};

}}}   // namespace millrace::detail

#include <millrace/simd/precise_end.inc>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#if defined __x86_64__ || defined __aarch64__

struct vector_photometric_kernels {
  using pixels = word_layer::pixels;
  using hues = word_layer::hues;
  using sharpening = word_layer::sharpening;
  using boxes = word_layer::boxes;
  using gaussian = word_layer::gaussian;
  using warping = word_layer::warping;
  using mixing = word_layer::mixing;
};

#endif

#ifdef __x86_64__

class photometric_runner {
 public:
  void run(std::span<const photometric_op> ops, const rgb_pixels& p) {
    vectors_ ? fast_.run(ops, p) : plain_.run(ops, p);
  }

 private:
  bool vectors_ = cpu_has_word_layer();
  basic_photometric_runner<vector_photometric_kernels> fast_;
  basic_photometric_runner<portable_photometric_kernels> plain_;
};

#elif defined __aarch64__

using photometric_runner = basic_photometric_runner<vector_photometric_kernels>;

#else

using photometric_runner = basic_photometric_runner<portable_photometric_kernels>;

#endif

}}}   // namespace millrace::detail
