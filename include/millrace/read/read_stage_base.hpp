// The base of the read stages: reads a source in chunks, and counts what was read.
//
//   class my_read_stage : public mr::detail::read_stage_base<mr::detail::shards_source> {
//     void read(shard& from) {
//       chunk read;
//       this->read_chunk(from, read, 64);     // opens the shard if necessary; gives samples, bytes, an error, the end
//     }
//   };
//
// Errors: an error ends the chunk, completed with the shard's name.
// Threads: read_chunk() of different shards at the same time, and it may block; the counters from any thread.
#pragma once

#include <millrace/measure/run_figures.hpp>
#include <millrace/measure/run_stats.hpp>
#include <millrace/measure/trace_range.hpp>
#include <millrace/read/reader_limit.hpp>
#include <millrace/read/reorder_buffer.hpp>
#include <millrace/work/dispatcher.hpp>
#include <millrace/work/sample_names.hpp>

#include <atomic>
#include <bit>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The interface between a session and its read stage. All members may be called from any thread.
class read_stage : public pipeline_node {
 public:
  /// A chunk ends at the first of these bounds; its last sample may exceed the bytes.
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10, chunk_samples = 64;

  /// Returns the bytes read since the start.
  virtual std::uint64_t bytes_read() const noexcept = 0;
  /// Returns the samples read since the start.
  virtual std::uint64_t samples_read() const noexcept = 0;
  /// Returns the nanoseconds that all reading threads together were busy.
  virtual std::uint64_t busy_ns() const noexcept = 0;
  /// Returns the number of I/O threads that may read now; 0 if the trainer reads.
  virtual std::size_t threads() const noexcept = 0;
  /// Returns the bytes of samples that were read and that no worker has taken yet.
  virtual std::size_t read_ahead_bytes() const noexcept = 0;
  /// Lets `names` name each sample. Called before start(), if batches have keys.
  virtual void name_samples(std::shared_ptr<sample_names> names) = 0;

  using pipeline_node::add_to;
  /// Sets the reading counters of `s`.
  void add_to(run_stats& s) const noexcept {
    s.samples_read = samples_read();
    s.bytes_read = bytes_read();
    s.read_busy_ns = busy_ns();
    s.io_threads = threads();
  }
};

/// Reads chunks from a source, and keeps the counters of a read stage.
template <class Source>
class read_stage_base : public read_stage {
 public:
  using item = typename Source::item;

  std::uint64_t bytes_read() const noexcept override { return bytes_read_.load(std::memory_order_relaxed); }
  std::uint64_t samples_read() const noexcept override { return samples_read_.load(std::memory_order_relaxed); }
  std::uint64_t busy_ns() const noexcept override { return busy_ns_.load(std::memory_order_relaxed); }
  void add_to(flow_figures& f, std::uint64_t now_ns) const override {
    add_reading(f, {.reads = meter().snapshot() -= before_, .metered = metered, .threads = limit_.open(),
                    .open_ns = limit_.open_ns(now_ns), .busy_ns = busy_ns(), .samples = samples_read(),
                    .bytes = bytes_read(), .in_turn_ns = in_turn_ns_.load(std::memory_order_relaxed),
                    .in_turn_samples = in_turn_samples_.load(std::memory_order_relaxed),
                    .passed_on = passed_on_.load(std::memory_order_relaxed)});
  }

  std::string waits(std::uint64_t now_ns) const override {
    std::string text = "read: " + meter().waits(now_ns);
    // A source that watches its own reads does not report other waits, and does not always report what it reads.
    if constexpr (metered)
      if (const std::string shard = chunks_.longest(now_ns); !shard.empty() && meter().longest(now_ns).empty())
        text += "; at " + shard;
    return text + "; " + std::to_string(this->read_ahead_bytes() / 1'000'000) + " MB wait for workers";
  }
  void add_to(timeline& t, std::uint64_t start_ns) const override {
    const auto lanes = meter().spans();
    for (std::size_t i = 0; i < lanes.size(); ++i) t.add_spans("read " + std::to_string(i), "read", lanes[i], start_ns);
  }
  void name_samples(std::shared_ptr<sample_names> names) override {
    if constexpr (requires { source_->name_samples(names); }) source_->name_samples(names);
    names_ = std::move(names);
  }

 protected:
  using shard = open_shard<Source>;

  /// Samples that were read, on their way into the queue of the shard.
  struct chunk {
    std::vector<sample<item>> samples{};
    std::size_t bytes = 0;
    std::exception_ptr error{};
    bool more = true;   // more samples may follow
  };

  static constexpr std::uint64_t hungry_ns = 20'000;

  read_stage_base(const Source& source, sample_sink<item>& next, std::size_t threads)
      : source_(&source), next_(&next), limit_(threads), before_(meter().snapshot()) {}

  /// Returns the name of the shard without its folders, for profilers.
  std::string name_of(const shard& from) const {
    if constexpr (requires { source_->shard_name(from.ordinal); }) {
      const std::string name = source_->shard_name(from.ordinal);
      return name.substr(name.rfind('/') + 1);
    } else {
      return std::to_string(from.ordinal);
    }
  }

  std::string full_name_of(const shard& from) const {
    if constexpr (requires { source_->shard_name(from.ordinal); }) return source_->shard_name(from.ordinal);
    else if (source_->shards() == 1) return "the source";
    else return "shard " + std::to_string(from.ordinal) + " of the source";
  }

  /// Reads up to `most` samples of a shard. `in_turn`: all later shards wait for this one.
  void read_chunk(shard& from, chunk& read, std::size_t most, bool in_turn = false) {
    const std::uint64_t start = steady_now_ns();
    std::optional<read_meter::running> all;
    const trace_range reading([&] { return "read/" + name_of(from); });
    try {
      if (!from.open) from.name = full_name_of(from);
      all.emplace(chunks_, start, from.name);
      if (!from.open) from.open.emplace(source_->open(from.ordinal, from.epoch));
      while (read.samples.size() < most && read.bytes < chunk_bytes) {
        std::optional<item> next = from.open->next();
        if (!next) {
          read.more = false;
          break;
        }
        sample<item> s;
        s.epoch = s.pass = from.epoch;
        read.bytes += held_bytes_of(*next);
        s.item = std::move(next);
        if constexpr (requires { from.open->stamp(s); }) from.open->stamp(s);
        else s.id = sample_id(from.ordinal, from.next_index++);
        if (names_)
          names_->name(s, [&] {
            const located_sample at{from.ordinal, from.next_index - 1};
            return sample_names::name_in(*source_, at);
          });
        read.samples.push_back(std::move(s));
        // Idle workers get the samples of a slow read early; busy workers get whole chunks. A check after 1, 2, 4, ...
        // samples is enough: no sample is held back for longer than reading took so far.
        if (std::has_single_bit(read.samples.size()) && next_->backlog() == 0 && steady_now_ns() - start > hungry_ns)
          break;
        if (stopped_.load(std::memory_order_relaxed)) break;
      }
    } catch (...) {
      error_location at;
      at.stage = "source";
      if constexpr (requires { source_->shard_name(from.ordinal); }) at.shard = source_->shard_name(from.ordinal);
      read.error = located_exception(at);
      read.more = false;
    }
    const std::uint64_t end = steady_now_ns();
    if (all) {
      all->brought(read.bytes);
      all->end(end);
    }
    bytes_read_.fetch_add(read.bytes, std::memory_order_relaxed);
    samples_read_.fetch_add(read.samples.size(), std::memory_order_relaxed);
    busy_ns_.fetch_add(end - start, std::memory_order_relaxed);
    if (!in_turn) return;
    in_turn_ns_.fetch_add(end - start, std::memory_order_relaxed);
    in_turn_samples_.fetch_add(read.samples.size(), std::memory_order_relaxed);
  }

  const Source* const source_;
  sample_sink<item>* const next_;
  reader_limit limit_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> passed_on_{0};   // samples passed on in order, if shards take turns

 private:
  static constexpr bool metered = requires(const Source& s) { s.reads(); };
  read_meter& meter() const noexcept {
    if constexpr (metered) return source_->reads();
    else return chunks_;
  }

  std::shared_ptr<sample_names> names_;
  mutable read_meter chunks_;   // whole chunks read from the source
  const read_meter::figures before_;
  std::atomic<std::uint64_t> bytes_read_{0}, samples_read_{0}, busy_ns_{0}, in_turn_ns_{0}, in_turn_samples_{0};
};

}}}  // namespace millrace::detail
