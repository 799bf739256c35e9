// The read stage for most sources. I/O threads read several shards of the source at once. Their samples are passed on
// in order.
//
//   mr::detail::shard_read_stage<mr::detail::shards_source> in(source, order, options, first_segment.entrance());
//   in.start();
//   in.stop();  in.join();      // when the session ends
//
// Any free I/O thread may read a shard. reorder_buffer.hpp puts the samples in order. A thread reads only while the
// bytes that are read ahead are below the limit. Only the current shard (the shard of the next sample) may exceed the
// limit, by one chunk at a time, if the workers have no samples. This guarantees progress.
// Threads: `threads` I/O threads. With 0 threads, advance() reads on the calling thread. Reads block only these
// threads.
#pragma once

#include <millrace/read/stage/read_stage_base.hpp>

#include <mutex>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of shard_read_stage.
struct shard_read_stage_options {
  unsigned threads = 4;   ///< number of I/O threads; with 0, advance() reads
  std::uint64_t epochs = 1;
  std::size_t read_ahead_bytes = std::size_t{256} << 20;   ///< maximum bytes of samples that no worker has claimed
  std::size_t window_bytes = ~std::size_t{0};              ///< maximum bytes in the shuffle window
  std::uint64_t first_epoch = 0;
  std::size_t first_shard = 0;                             ///< index in the order of the first epoch
  std::uint64_t first_sample = 0, first_ordinal = 0;         ///< as the members of reorder_buffer_options
  replay_log* log = nullptr;
  std::uint64_t take = ~std::uint64_t{0};                  ///< maximum number of samples to deliver in each epoch
  lost_shards* lost = nullptr;                             ///< lets the run continue after a lost shard; may be null
};

/// Reads the shards of a run with several I/O threads.
template <class Source>
class shard_read_stage final : public read_stage_base<Source> {
 public:
  using item = typename Source::item;
  using options = shard_read_stage_options;

  shard_read_stage(const Source& source, const shard_order& order, options o, sample_sink<item>& next);

  void count_into(event_counts& counts) noexcept override { order_.count_into(counts); }

  /// Reads a few samples on the calling thread, or passes on waiting samples. Returns false if there was nothing to do.
  bool advance() override;

  std::size_t read_ahead_bytes() const noexcept override { return read_ahead(); }

 private:
  using shard = typename reorder_buffer<Source>::shard;
  using typename read_stage_base<Source>::portion;
  using read_stage_base<Source>::chunk_samples;
  using read_stage_base<Source>::next_;
  using read_stage_base<Source>::passed_on_;
  using read_stage_base<Source>::limit_;
  using read_stage_base<Source>::ahead_;
  using read_stage_base<Source>::mutex_;

  static constexpr std::size_t max_queued = 4'096;
  static constexpr std::size_t samples_per_advance = 8;   // maximum; a slow read ends after its first sample

  // ---- under mutex_ ----

  bool pass_on() override;
  portion find_work() override;
  bool needs_space() override { return !order_.had_space() || waits_for_bytes_; }
  void finish(std::exception_ptr error) override { order_.finish(std::move(error)); }

  /// Returns the first shard in order that a thread may read now, or null. May open the shard.
  shard* find_shard();
  bool may_read(const shard& from, bool full) const;
  /// Returns whether the bytes that are read ahead have reached the limit. After that, later shards wait until a
  /// quarter of the limit is free. This quarter is for the current shard.
  bool ahead_is_full();
  std::size_t read_ahead() const noexcept { return order_.queued_bytes() + next_->held_bytes(); }

  const options options_;
  reorder_buffer<Source> order_;
  bool waits_for_bytes_ = false;   // readers of later shards wait, because too many bytes are read ahead
};

}}}  // namespace millrace::detail

#include <millrace/read/stage/shard_read_stage.tpl.hpp>
