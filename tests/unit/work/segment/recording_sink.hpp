// A sink that records its calls as text, and has as much space as the test sets.
#pragma once

#include <millrace/work/schedule/segment.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;

/// Accepts samples while `room` lasts.
template <class T>
class recording_sink final : public mr::detail::sample_sink<T> {
 public:
  using sample = mr::detail::sample<T>;
  static constexpr std::size_t unlimited = 1'000'000;

  std::atomic<std::size_t> room{unlimited};   ///< samples that can_accept() still lets in
  std::atomic<bool> settled{true};            ///< the answer of settle()
  std::atomic<std::size_t> published{0};      ///< calls of publish()
  std::atomic<std::uint64_t> waiting{0};      ///< the answer of backlog()
  std::atomic<std::uint64_t> next_position{0};   ///< the answer of next_row(); increases with each sample
  std::atomic<bool> fails{false};             ///< true: the next put() throws std::bad_alloc
  std::atomic<std::size_t> settle_calls{0};   ///< calls of settle()
  std::function<void()> on_publish{};         ///< publish() calls it, if it is set
  mr::detail::space_listener* producer = nullptr;

  /// Returns all calls: "0 1 batch 2 epoch end", or "... failed" if finish() had an error.
  std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  /// Returns the samples, after the last call of any thread.
  const std::vector<sample>& samples() const { return samples_; }
  std::exception_ptr error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  /// Adds space and reports it to the producer, as a worker does.
  void free(std::size_t count) {
    room += count;
    producer->space_freed();
  }

  bool can_accept() override { return room > 0; }
  void put(sample&& s) override {
    if (fails.exchange(false)) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    add(s.what != sample::kind::item ? "damaged" : text_of(*s.item));
    samples_.push_back(std::move(s));
    --room;
    ++next_position;
  }
  void end_batch() override { add_locked("batch"); }
  void end_epoch() override { add_locked("epoch"); }
  void end_pass() override { add_locked("pass"); }
  void finish(std::exception_ptr error) override {
    const std::lock_guard lock(mutex_);
    add(error ? "failed" : "end");
    error_ = std::move(error);
  }
  bool settle() override {
    ++settle_calls;
    return settled;
  }
  void publish() override {
    ++published;
    if (on_publish) on_publish();
  }
  std::uint64_t backlog() const noexcept override { return waiting; }
  std::size_t held_bytes() const noexcept override { return 0; }
  void set_listener(mr::detail::space_listener* listener) override { producer = listener; }
  std::uint64_t next_row() const noexcept override { return next_position; }

 private:
  static std::string text_of(const T& item) {
    if constexpr (requires { std::to_string(item); }) return std::to_string(item);
    else return std::to_string(item.number);
  }
  void add(const std::string& text) { log_ += (log_.empty() ? "" : " ") + text; }
  void add_locked(const std::string& text) {
    const std::lock_guard lock(mutex_);
    add(text);
  }

  mutable std::mutex mutex_;
  std::string log_;
  std::vector<sample> samples_;
  std::exception_ptr error_;
};

/// Returns the text of an error: "", or its message and its location.
inline std::string error_text(const std::exception_ptr& why) {
  if (!why) return {};
  try {
    std::rethrow_exception(why);
  } catch (const std::exception& e) {
    return e.what();
  }
}
