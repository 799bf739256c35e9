// The training loop of a small CUDA trainer, and the same loop with Millrace. cuda_trainer runs both with its kernels,
// `bench overlap` with steps of a selected length.
//
//   float loss = train_before(net, files, {.epochs = 5});
//   float loss = train_after(net, files, {.epochs = 5, .device = mr::cuda_device(0)});
//
// `net` is the trainer's network: upload() copies and waits, step() only launches, read_loss() waits (cuda_step.hpp).
#pragma once

#include <millrace/millrace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

struct trainer_sample {
  std::vector<std::byte> file;
  std::int32_t label;
};

struct trainer_settings {
  static constexpr std::size_t rows = 64, side = 32, row_pixels = side * side * 3;

  std::size_t epochs = 1;
  millrace::device device = millrace::host_device();   ///< for the loop with Millrace
};

inline millrace::image trainer_decode(const std::vector<std::byte>& file) {
  constexpr std::size_t side = trainer_settings::side;
  return millrace::jpeg(millrace::bytes::owned(file)).resize(side, side).pixels();
}

// ---------------------------------------------------------------------------------------------------------------------
// Before: the GPU is idle while a batch is decoded and copied, and the loop waits for each step.

template <class Network>
float train_before(Network& net, const std::vector<trainer_sample>& samples, const trainer_settings& s) {
  float loss = 0;
  std::vector<std::uint8_t> pixels(s.rows * s.row_pixels);
  std::vector<std::int32_t> labels(s.rows);
  for (std::size_t epoch = 0; epoch < s.epochs; ++epoch)
    for (std::size_t start = 0; start + s.rows <= samples.size(); start += s.rows) {
      for (std::size_t i = 0; i < s.rows; ++i) {
        const millrace::image image = trainer_decode(samples[start + i].file);
        std::ranges::copy(image.span(), pixels.begin() + static_cast<std::ptrdiff_t>(i * s.row_pixels));
        labels[i] = samples[start + i].label;
      }
      net.upload(pixels.data(), labels.data());
      net.step(net.uploaded_pixels(), net.uploaded_labels(), net.stream());
      loss = net.read_loss();
    }
  return loss;
}

// After: workers decode into pinned slots, copies run in a separate stream, and the loop only launches kernels. It
// reads the loss at the end.

struct prepared {
  millrace::image pixels;
  std::int32_t label;
};

template <class Network>
float train_after(Network& net, const std::vector<trainer_sample>& samples, const trainer_settings& s) {
  namespace mr = millrace;
  auto flow = mr::from(samples) |
              mr::map([](const trainer_sample& one) { return prepared{trainer_decode(one.file), one.label}; }) |
              mr::batch<&prepared::pixels, &prepared::label>({.size = s.rows}) |
              mr::to_device({.device = s.device, .stream = net.stream()});
  mr::session run{std::move(flow), {.epochs = s.epochs, .notice = mr::quiet}};
  for (auto& b : run) {
    auto& [pixels, label] = b;
    net.step(pixels, label, b.stream());
  }
  return net.read_loss();
}

// ---------------------------------------------------------------------------------------------------------------------
