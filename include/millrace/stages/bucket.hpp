// bucket: groups samples of similar length into one batch, with as many rows as a budget of tokens allows.
//
//   auto flow = mr::shards("train-{000..146}.tar") | mr::map(prepare)              // example: a ragged column `words`
//             | mr::bucket<&example::words>({.boundaries = {16, 64, 256}, .tokens = 4096})
//             | mr::batch<&example::words, &example::label>({.size = 256});        // 256, 64 or 16 rows
//
// The column is ragged, or an integer that contains the length. A sample goes into the first bucket whose boundary is
// at least the length of the sample. A batch from the bucket with boundary n has tokens / n rows, but at most the
// `size` of batch(). A full bucket becomes the next batch; b.size() is its number of rows. Without `tokens`, every full
// batch has `size` rows. In that case, the column may also contain a category, which is an integer from 0 to the last
// boundary:
//
//   mr::bucket<&example::kind>({.boundaries = {1, 2}})     // 1: upright images, 2: wide ones; ragged_picture.hpp
//
// The buckets are flushed every `flush_every` samples. If the run has one lane (session_options::lanes), which is the
// default on one rank, they are also flushed at the end of each pass. A flush delivers all samples in the buckets.
// Samples that do not fill a batch of their bucket move to the next longer bucket. Therefore each flush creates at most
// one short batch. Every sample is delivered exactly once; no sample is dropped, even with drop_last. The order is the
// same for any number of threads. A resumed run starts reading at the point where the buckets were last empty. With
// several ranks, set session_options::epoch_batches, so that each rank has the same number of batches. Each rank fills
// its buckets with its own samples, so rows and lengths differ between ranks. To compute a mean over all ranks, divide
// by the sum of b.size() over all ranks.
// Memory: each bucket stores less than one full batch of samples. If a sample fails, the samples in the buckets are not
// delivered. A resumed run reads these samples again.
// Errors: setup_error for invalid options, and for buckets that exceed the memory budget; data_error for a length above
// the last boundary. Threads: runs on its own thread.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/flow/diagnose.hpp>
#include <millrace/item/column/column_traits.hpp>
#include <millrace/item/column/columns.hpp>
#include <millrace/item/sample.hpp>

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of bucket().
struct bucket_options {
  std::vector<std::size_t> boundaries{};   ///< the greatest length of each bucket, ascending
  std::optional<std::size_t> tokens{};     ///< maximum tokens of a batch, padding included; at least the last boundary
  std::uint64_t flush_every = 65'536;      ///< samples between two flushes; a resumed run rereads at most that number
};

namespace detail {

template <class Column>
concept has_length = std::integral<Column> || requires(const Column& c) {
  { c.length() } -> std::convertible_to<std::size_t>;
};

/// Implements the stage, with the interface of serial_segment (work/segment/serial_stages.hpp).
template <class T, auto Column>
class bucketing {
 public:
  using output = T;
  static constexpr const char* name = "bucket";
  static constexpr bool one_for_one = true;

  struct limits {
    std::size_t max_rows, max_bytes;
  };
  bucketing(const bucket_options& o, const limits& most) : flush_every_(o.flush_every), max_bytes_(most.max_bytes) {
    for (const std::size_t b : o.boundaries)
      buckets_.push_back({b, o.tokens ? std::min(most.max_rows, *o.tokens / b) : most.max_rows, {}});
  }

  void push(sample<T> s, std::vector<sample<T>>& out) {
    // Flushes only between two samples of the source, because a resumed run can begin only there.
    if (since_flush_ >= flush_every_ && s.ordinal != last_ordinal_) flush(out);
    last_ordinal_ = s.ordinal;
    if (since_flush_++ == 0) {
      first_ordinal_ = s.ordinal;
      first_epoch_ = s.epoch;
    }
    s.ordinal = first_ordinal_;
    s.epoch = first_epoch_;   // samples of one flush may have different epochs
    bucket& into = bucket_of(length_of(*s.item));
    held_bytes_ += held_bytes_of(*s.item);
    if (held_bytes_ > max_bytes_)
      throw setup_error(
          "the buckets exceed their memory budget: got " + std::to_string(held_bytes_) + " bytes, expected at most " +
              std::to_string(max_bytes_) + " bytes",
          "Set fewer boundaries, a smaller bucket_options::tokens, or a larger session_options::memory_bytes");
    into.samples.push_back(std::move(s));
    if (into.samples.size() == into.rows) emit_batch(into.samples, into.rows, out);
  }
  void end_epoch(std::vector<sample<T>>& out) { flush(out); }

 private:
  struct bucket {
    std::size_t boundary, rows;
    std::vector<sample<T>> samples;
  };

  static std::size_t length_of(const T& item) {
    const auto& column = member_of<Column>(item);
    if constexpr (requires { column.length(); }) return column.length();
    else return static_cast<std::size_t>(column);
  }
  bucket& bucket_of(std::size_t length) {
    for (bucket& b : buckets_)
      if (length <= b.boundary) return b;
    throw data_error(named_column<Column>() + " has length " + std::to_string(length) +
                         ", but the last boundary of bucket() is " + std::to_string(buckets_.back().boundary),
                     "Add a boundary, or truncate longer rows with ragged_options");
  }

  /// Emits the first `rows` samples of `from` as a batch.
  void emit_batch(std::vector<sample<T>>& from, std::size_t rows, std::vector<sample<T>>& out) {
    for (std::size_t i = 0; i < rows; ++i) {
      held_bytes_ -= held_bytes_of(*from[i].item);
      out.push_back(std::move(from[i]));
    }
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(rows));
    out.emplace_back().what = sample<T>::kind::batch_end;
  }
  void flush(std::vector<sample<T>>& out) {
    std::vector<sample<T>> left;
    for (bucket& b : buckets_) {
      for (sample<T>& s : b.samples) left.push_back(std::move(s));
      b.samples.clear();
      while (left.size() >= b.rows) emit_batch(left, b.rows, out);
    }
    if (!left.empty()) emit_batch(left, left.size(), out);
    since_flush_ = 0;
  }

  std::vector<bucket> buckets_;
  std::uint64_t flush_every_;
  std::size_t max_bytes_, held_bytes_ = 0;
  std::uint64_t since_flush_ = 0;                                          // samples pushed since the last flush
  std::uint64_t first_ordinal_ = 0, first_epoch_ = 0, last_ordinal_ = 0;   // of the samples since the flush
};

inline void check(const bucket_options& o) {
  const auto not_ascending = [](std::size_t a, std::size_t b) { return a >= b; };
  if (o.boundaries.empty() || o.boundaries.front() == 0 ||
      std::adjacent_find(o.boundaries.begin(), o.boundaries.end(), not_ascending) != o.boundaries.end())
    throw setup_error("bucket() needs ascending boundaries, each at least 1",
                      "Set, for example, .boundaries = {16, 64, 256}");
  if (o.tokens && *o.tokens < o.boundaries.back())
    throw setup_error("bucket_options::tokens is smaller than the last boundary: got " + std::to_string(*o.tokens) +
                          " tokens in a batch, expected at least " + std::to_string(o.boundaries.back()),
                      "Set bucket_options::tokens to a multiple of the last boundary");
  if (o.flush_every == 0)
    throw setup_error("bucket() never fills a bucket: got bucket({.flush_every = 0})",
                      "Set bucket_options::flush_every, in samples, to many times the batch size");
}

/// Returns the first of these columns that has a length, or the first column if no column has a length.
template <auto First, auto... Rest>
constexpr auto first_with_length() {
  if constexpr (has_length<member_type<First>> || !(has_length<member_type<Rest>> || ...)) return First;
  else return first_with_length<Rest...>();
}

/// The item type of a flow after bucket: only batch accepts it.
template <class Item>
struct bucketed {
  using bucket_mark = void;
  using item = Item;
};

/// The result of bucket().
template <auto Column>
struct bucket_stage : stage_tag {
  using bucket_mark = void;
  bucket_options options{};

  template <class In>
  static constexpr diagnose::mistake mistake_on = !detail::has_length<detail::member_type<Column>>
                                                      ? diagnose::mistake::no_length
                                                  : !std::same_as<detail::member_owner<Column>, In>
                                                      ? diagnose::mistake::accepts_another_type
                                                      : diagnose::mistake::none;
  template <class>
  using expected_input = detail::member_owner<Column>;
  template <class In>
  using out = bucketed<In>;
  template <class In>
  using serial = detail::bucketing<In, Column>;
};

}   // namespace detail

/// Returns the stage that batches samples by the length of `Column`. Throws setup_error if the options are invalid.
template <auto Column>
auto bucket(bucket_options options) {
  detail::check(options);
  return detail::bucket_stage<Column>{{}, std::move(options)};
}
/// Returns the stage that batches samples by the first of these columns that has a length.
template <auto... Members>
auto bucket(columns<Members...>, bucket_options options) {
  constexpr auto first = detail::first_with_length<Members...>();
  return bucket<first>(std::move(options));
}

}}   // namespace millrace
