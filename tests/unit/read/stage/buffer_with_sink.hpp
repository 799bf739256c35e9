// Shared by the tests of the reorder buffer: a source of numbers, a buffer with its sink, and damage.
#pragma once

#include "../../work/segment/recording_sink.hpp"

#include <millrace/read/stage/reorder_buffer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The type of a source. The tests append the samples themselves.
struct number_source {
  using item = int;
  struct reader {
    std::optional<int> next() { return std::nullopt; }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {}; }
};

/// A reorder buffer, its order, and the sink that it fills.
template <class Source = number_source>
struct buffer_with_sink {
  using buffer_type = mr::detail::reorder_buffer<Source>;
  using shard = typename buffer_type::shard;

  explicit buffer_with_sink(mr::detail::shard_order::options o, mr::detail::reorder_buffer_options more = {})
      : order(o), buffer(order, more, sink) {}

  /// Appends numbers first .. first + count - 1.
  void append(shard* to, int first, int count) {
    std::vector<mr::detail::sample<int>> samples;
    for (int n = first; n < first + count; ++n) samples.push_back({.item = n, .epoch = to->epoch, .pass = to->epoch});
    buffer.append(*to, samples);
  }
  void end(shard* ended, std::exception_ptr error = nullptr) { buffer.end(*ended, std::move(error)); }
  /// Opens the next shard, and reads `count` numbers to its end: epoch * 100 + ordinal * 10, ...
  bool read_shard(int count) {
    shard* const opened = buffer.open_next();
    if (!opened) return false;
    append(opened, static_cast<int>(opened->epoch * 100 + opened->ordinal * 10), count);
    end(opened);
    return true;
  }
  std::string pass_on() {
    buffer.pass_on();
    return sink.log();
  }
  std::vector<int> delivered() const {
    std::vector<int> all;
    for (const auto& s : sink.samples()) all.push_back(*s.item);
    return all;
  }

  mr::detail::shard_order order;
  recording_sink<typename Source::item> sink;
  buffer_type buffer;
};

inline std::exception_ptr damage_named(const char* text) {
  return std::make_exception_ptr(mr::data_error(text, "Copy it"));
}
