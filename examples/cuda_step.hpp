// The network of a small CUDA trainer: two layers, kernels and copies, as such trainers usually implement them.
//
//   two_layers net({.rows = 64, .pixels = 3072, .classes = 10});
//   net.upload(host_pixels, host_labels);              // blocking copies from pageable memory
//   net.step(net.uploaded_pixels(), net.uploaded_labels(), net.stream());     // returns at once
//   float loss = net.read_loss();                      // of the last step; waits for it
//
// Pixels [rows, height, width, channels] u8, labels [rows] i32. One hidden layer with ReLU, softmax, cross-entropy,
// gradient descent, all in f32. No sum depends on the order of threads, so that two runs compute the same bits.
// `on_host` runs the kernels on the host, one thread after the other and without CUDA: slow, to check the arithmetic
// without a GPU. Errors of CUDA end the program with a message. Threads: one.
#pragma once

#include <millrace/device/view.hpp>

struct two_layers_options {
  std::size_t rows = 64, pixels = 0, hidden = 64, classes = 10;
  float rate = 0.05F;
  bool on_host = false;
};

/// Returns whether there is a GPU; if not, `why` points to the message of CUDA.
bool gpu_is_there(const char*& why);

class two_layers {
 public:
  using pixels_view = millrace::tensor_view<const std::uint8_t, 4>;
  using labels_view = millrace::tensor_view<const std::int32_t, 1>;

  explicit two_layers(two_layers_options options);
  two_layers(const two_layers&) = delete;
  two_layers& operator=(const two_layers&) = delete;
  ~two_layers();

  millrace::stream_view stream() const { return stream_; }

  void upload(const std::uint8_t* pixels, const std::int32_t* labels);
  pixels_view uploaded_pixels() const { return {.data = pixels_, .shape = {o_.rows, 1, 1, o_.pixels}}; }
  labels_view uploaded_labels() const { return {.data = labels_, .shape = {o_.rows}}; }

  void step(pixels_view pixels, labels_view labels, millrace::stream_view stream);
  float read_loss();

 private:
  const two_layers_options o_;
  CUstream_st* stream_ = nullptr;
  // In GPU memory, allocated at the start.
  std::uint8_t* pixels_ = nullptr;   // written by upload()
  std::int32_t* labels_ = nullptr;
  float* first_ = nullptr;    // weights, [pixels + 1, hidden]: the last row is the bias
  float* second_ = nullptr;   // [hidden + 1, classes]
  float* active_ = nullptr;   // [rows, hidden], after the ReLU
  float* errors_ = nullptr;   // [rows, classes]: softmax less target
  float* back_ = nullptr;     // [rows, hidden]
  float* losses_ = nullptr;   // [rows]
};
