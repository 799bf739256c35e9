// The model that train_images trains: a network on the host, or the same network as kernels on a GPU.
//
//   auto net = make_learner(place, {.side = 32, .classes = 10, .seed = 1}, max_rows);
//   net->backward(pixels, labels, {.loss = loss, .accuracy = accuracy, .stream = b.stream()});
//   net->update(rate, stream);
//   net->evaluate(pixels, labels, stream);   network_outcome outcome = net->take_outcome(stream);  // this one waits
//
// Views point to memory of the learner's device. On a GPU every call except take_outcome(), save() and load() returns
// at once. Builds with nvcc have kernels (MILLRACE_EXAMPLE_KERNELS).
// Errors: as network.hpp and gpu_network.hpp.
#pragma once

#include "learner_place.hpp"
#include "network.hpp"
#ifdef MILLRACE_EXAMPLE_KERNELS
#include "gpu_network.hpp"
#endif

#include <millrace/device/device.hpp>
#include <millrace/train/metrics.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

class learner {
 public:
  using pixels_view = millrace::tensor_view<const std::uint8_t, 4>;
  using labels_view = millrace::tensor_view<const std::int32_t, 1>;
  using mixed_labels = network::mixed_labels;
  struct step_sums {
    millrace::mean_metric& loss;
    millrace::accuracy_metric& accuracy;
    millrace::stream_view stream;
  };

  virtual ~learner() = default;
  /// `others`: the second labels of mixed rows; on the host only.
  virtual void backward(pixels_view pixels, labels_view labels, step_sums into, const mixed_labels& others = {}) = 0;
  virtual void update(double rate, millrace::stream_view stream) = 0;
  virtual void evaluate(pixels_view pixels, labels_view labels, millrace::stream_view stream) = 0;
  /// Returns the outcome of all evaluations since the last call.
  virtual network_outcome take_outcome(millrace::stream_view stream) = 0;
  virtual void save(const std::string& path, std::string_view note, millrace::stream_view stream) = 0;
  /// Restores the exact state, and returns the note. Call it before the first batch.
  virtual std::string load(const std::string& path) = 0;
  virtual std::uint64_t updates() const = 0;
};

class host_learner final : public learner {
 public:
  explicit host_learner(const network_options& options) : net_(options) {}

  void backward(pixels_view pixels, labels_view labels, step_sums into, const mixed_labels& others) override {
    const network_outcome outcome = net_.backward(pixels, labels, others);
    into.loss.add(outcome.mean_loss(), static_cast<double>(outcome.samples));
    into.accuracy.add(net_.logits(), labels);
  }
  void update(double rate, millrace::stream_view) override { net_.update(rate); }
  void evaluate(pixels_view pixels, labels_view labels, millrace::stream_view) override {
    outcome_.add(net_.evaluate(pixels, labels));
  }
  network_outcome take_outcome(millrace::stream_view) override { return std::exchange(outcome_, {}); }
  void save(const std::string& path, std::string_view note, millrace::stream_view) override { net_.save(path, note); }
  std::string load(const std::string& path) override { return net_.load(path); }
  std::uint64_t updates() const override { return net_.updates(); }

 private:
  network net_;
  network_outcome outcome_;
};

#ifdef MILLRACE_EXAMPLE_KERNELS

class kernel_learner final : public learner {
 public:
  kernel_learner(const network_options& options, const gpu_network_options& kernels) : host_(options), net_(kernels) {
    net_.set_weights(host_.weights().data());
  }

  void backward(pixels_view pixels, labels_view labels, step_sums into, const mixed_labels&) override {
    net_.backward(pixels, labels, into.stream);
    into.loss.add(net_.losses(), {.stream = into.stream});
    into.accuracy.add(net_.logits(), labels, {.stream = into.stream});
  }
  void update(double rate, millrace::stream_view stream) override { net_.update(rate, stream); }
  void evaluate(pixels_view pixels, labels_view labels, millrace::stream_view stream) override {
    net_.evaluate(pixels, labels, stream);
  }
  network_outcome take_outcome(millrace::stream_view stream) override {
    const gpu_network_totals totals = net_.read_totals(stream);
    net_.restart_totals(stream);
    return {.loss_sum = totals.loss_sum,
            .correct = static_cast<std::size_t>(totals.correct),
            .samples = static_cast<std::size_t>(totals.samples)};
  }
  /// Saves in the format of the host network, so that either can resume.
  void save(const std::string& path, std::string_view note, millrace::stream_view stream) override {
    std::vector<float> state(3 * net_.weight_count());
    net_.read_state(state.data(), stream);
    host_.set_state(state, net_.updates());
    host_.save(path, note);
  }
  std::string load(const std::string& path) override {
    std::string note = host_.load(path);
    net_.set_state(host_.state().data(), host_.updates());
    return note;
  }
  std::uint64_t updates() const override { return net_.updates(); }

 private:
  network host_;   // initializes the weights, and reads and writes files
  gpu_network net_;
};

#endif

/// `max_rows`: limit for the rows of a batch; kernels allocate memory for it.
inline std::unique_ptr<learner> make_learner([[maybe_unused]] const learner_place& place,
                                             const network_options& options, [[maybe_unused]] std::size_t max_rows) {
#ifdef MILLRACE_EXAMPLE_KERNELS
  if (place.kernels || place.on_gpu())
    return std::make_unique<kernel_learner>(options, gpu_network_options{.side = options.side,
                                                                         .classes = options.classes,
                                                                         .max_rows = max_rows,
                                                                         .weight_decay = options.weight_decay,
                                                                         .on_host = !place.on_gpu()});
#endif
  return std::make_unique<host_learner>(options);
}
