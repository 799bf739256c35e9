// One run of train_images: folder and log, learning rate, best and last model, and the summary.
//
//   training_run run(settings, start);
//   run.begin_epoch(epoch);
//   run.record(b), run.sums(b), run.next_rate(b);     // for a batch: before the step, for backward(), for update()
//   if (!run.updated(b, wait_ns)) break;              // after an update; false: a signal requested the end
//   if (run.trained()) run.validated(outcome);        // after an epoch
//   return run.finish(session);                       // the exit status
//
// Files of the folder WORK/run-N: train.jsonl, TensorBoard events, best.bin (the best model), last.bin (model,
// optimizer and resume point of one moment, at the end of each epoch). On request also report.html, .txt, .json,
// .trace.json, and batch.png, whose images are also in TensorBoard. Progress is printed to stderr.
//
// After Ctrl-C, or SIGTERM from a batch system, the run completes the current update, writes last.bin and the requested
// files, and returns the exit status 130 (143). A second signal ends the program at once.
// Errors: those of files. Threads: the training thread. Lifetime: `settings` and `start` outlive the run.
#pragma once

#include "training_settings.hpp"
#include "training_start.hpp"
#ifdef MILLRACE_EXAMPLE_KERNELS
#include "gpu_metrics.hpp"
#endif

#include <millrace/metrics.hpp>
#include <millrace/pictures.hpp>
#include <millrace/report.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

// Ctrl-C, and the SIGTERM of a batch system: the first signal requests the end of the program, a second one ends it.

/// The signal that requests the end of the program; 0: none. A signal handler can portably write only this type.
inline volatile std::sig_atomic_t end_signal = 0;

/// Handles each signal once: a second signal of the same kind has its default effect, and ends the program.
inline void handle_end_signals() {
  struct sigaction once{};
  once.sa_handler = [](int signal) { end_signal = signal; };
  once.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &once, nullptr);
}

class training_run {
 public:
  training_run(const training_settings& settings, const training_start& start)
      : s_(settings),
        start_(start),
        net_(*start.net),
        folder_(s_.resume.empty() ? make_folder(s_.work) : s_.resume),
        out_(open_log()),
        metrics_({.every = 20, .device = make_sums(s_.place)}),
        best_(start.from.best) {}

  /// Returns whether a signal requested the end, and the current update is complete.
  bool stopped() const { return stopped_; }

  void begin_epoch(std::uint64_t epoch) {
    epoch_ = epoch;
    epoch_began_ns_ = now_ns();
    position_.clear();
    write_images_ = s_.pictures;
  }
  /// Before the step: counts the samples, and writes the first images of the epoch on request.
  void record(const auto& b) {
    metrics_.count("samples", b.size());
    if (!std::exchange(write_images_, false)) return;
    millrace::save_grid(b, folder_ + "/batch.png");
    out_.push({.step = net_.updates(), .epoch = epoch_, .images = {millrace::encode_grid(b, "augmented")}});
  }
  /// Returns the accumulators for losses and correct predictions.
  learner::step_sums sums(const auto& b) { return {.loss = loss_, .accuracy = accuracy_, .stream = b.stream()}; }
  /// Returns the learning rate of the update after this batch.
  double next_rate(const auto& b) {
    const auto processed = static_cast<double>((b.step() + 1) * start_.micro_batch);
    const double rate = learning_rate(processed / static_cast<double>(s_.epochs * start_.samples_per_epoch));
    rate_used_.add(rate);
    return rate;
  }
  /// Returns whether to continue the epoch. `wait_ns`: total time that the loop has waited for batches.
  bool updated(const auto& b, std::uint64_t wait_ns) {
    metrics_.spent_ns("data_wait", wait_ns - std::exchange(waited_ns_, wait_ns));
    metrics_.maybe_log({.step = net_.updates(), .epoch = epoch_}, out_);
    position_ = b.resume_text();
    stopped_ = end_signal != 0 && (b.step() + 1) % start_.epoch_batches != 0;   // a complete epoch is validated
    return !stopped_;
  }
  /// After the last batch of an epoch: returns whether to validate. After a signal it saves the model instead.
  bool trained() {
    metrics_.finish(out_);
    training_ns_ += now_ns() - epoch_began_ns_;
    if (stopped_) save_last();
    return !stopped_;
  }
  void validated(const network_outcome& held_out) {
    held_out_ = held_out;
    out_.push({.step = net_.updates(),
               .epoch = epoch_,
               .values = {{"validation_loss", held_out.mean_loss()},
                          {"validation_accuracy", held_out.accuracy(), millrace::quantity_unit::share}}});
    if (held_out.accuracy() > best_) net_.save(folder_ + "/best.bin", {}, {});
    best_ = std::max(best_, held_out.accuracy());
    if (!position_.empty()) save_last();
    stopped_ = end_signal != 0 && epoch_ + 1 < s_.epochs;
    metrics_.restart();   // excludes the validation from the rates of the next row
  }

  /// Closes the log, writes the report, prints the summary, and returns the exit status.
  int finish(const auto& training) {
    out_.close();
    if (s_.report) {
      const millrace::run_report report = millrace::report_of(training);
      millrace::write_reports(report, folder_ + "/report");
      std::printf("%sreport: %s/report.html\n", millrace::text_report(report).c_str(), folder_.c_str());
    }
    std::printf("log: %s/train.jsonl\nTensorBoard: %s\n", folder_.c_str(), events_.c_str());
    if (stopped_) {
      std::printf("stopped: %llu updates; continue with the same arguments and --resume %s\n",
                  static_cast<unsigned long long>(net_.updates()), folder_.c_str());
      return 128 + end_signal;
    }
    const auto stats = training.stats();
    std::printf("model: %s/best.bin (accuracy %.3f)\n", folder_.c_str(), best_);
    std::printf("summary: accuracy=%.3f images_per_second=%.0f data_wait_share=%.3f\n", held_out_.accuracy(),
                static_cast<double>(stats.samples) * 1e9 / static_cast<double>(training_ns_),
                static_cast<double>(stats.wait_ns) / static_cast<double>(training_ns_));
    return 0;
  }

 private:
  /// Creates the first WORK/run-N that does not exist.
  static std::string make_folder(const std::string& work) {
    std::filesystem::create_directories(work);
    for (int n = 1;; ++n) {
      const std::string folder = work + "/run-" + std::to_string(n);
      if (std::filesystem::create_directory(folder)) return folder;
    }
  }
  millrace::log open_log() {
    millrace::tensorboard board(folder_);
    events_ = board.path();
    return millrace::log(millrace::status_line{}, millrace::json_lines(folder_ + "/train.jsonl"), std::move(board));
  }
  /// Returns accumulators in the memory of the columns.
  static std::shared_ptr<millrace::device_sums> make_sums([[maybe_unused]] const learner_place& place) {
#ifdef MILLRACE_EXAMPLE_KERNELS
    if (place.on_gpu()) return make_gpu_sums(place.device.ordinal());
#endif
    return nullptr;
  }
  /// Linear warm-up, then half a cosine; `progress` is 0 to 1.
  static double learning_rate(double progress) {
    constexpr double peak = 4e-3, warm_up = 0.1;
    if (progress < warm_up) return peak * progress / warm_up;
    return peak / 2 * (1 + std::cos(std::numbers::pi * (progress - warm_up) / (1 - warm_up)));
  }
  static std::uint64_t now_ns() {
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(now.count());
  }
  void save_last() { net_.save(folder_ + "/last.bin", checkpoint_note{best_, position_}.text(), {}); }

  const training_settings& s_;
  const training_start& start_;
  learner& net_;
  const std::string folder_;
  std::string events_{};   // path of the TensorBoard file
  millrace::log out_;
  millrace::metrics metrics_;
  millrace::mean_metric loss_ = metrics_.mean("loss"), rate_used_ = metrics_.mean("learning_rate");
  millrace::accuracy_metric accuracy_ = metrics_.accuracy("accuracy");
  std::uint64_t epoch_ = 0, epoch_began_ns_ = 0, training_ns_ = 0, waited_ns_ = 0;
  std::string position_{};   // after the last update of the epoch
  network_outcome held_out_{};
  double best_;
  bool write_images_ = false, stopped_ = false;
};
