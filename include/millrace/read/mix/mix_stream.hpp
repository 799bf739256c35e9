// Reads one source of a streamed mix. Delivers the samples of the source, pass after pass.
//
//   mr::detail::mix_stream<mr::detail::shards_source> one(source, {.seed = 7, .window = 8192});
//   one.begin_pass(3);
//   while (!one.is_exhausted(counts)) use(one.take());
//
// The order is the same as with a shuffle() directly after the source: first the shards are shuffled, then the samples
// within the window.
// Errors: the errors of the source, with the name of the shard added. Threads: not thread-safe.
#pragma once

#include <millrace/flow/stage.hpp>
#include <millrace/measure/meters/read_meter.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/read/run/data_identity.hpp>
#include <millrace/work/segment/sample_names.hpp>

#include <concepts>
#include <memory>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Options of mix_stream.
struct mix_stream_options {
  std::uint64_t seed = 0;
  std::size_t window = 0;                ///< shuffle window in samples; 0 without a shuffle
  std::uint64_t first_shard = 0;         ///< number of shards in all earlier sources
  std::shared_ptr<read_meter> reads{};   ///< meter shared by all sources; null if reads are not measured
  std::string name{};                    ///< name of the source in diagnostics
};

/// A source that can report its reads to a read_meter.
template <class Source>
concept watchable_source = requires(const Source& s, std::shared_ptr<read_meter> m) {
  { s.watched_in(m) } -> std::same_as<Source>;
};

/// Reads one source of a mix, one shard at a time.
template <class Source>
class mix_stream {
 public:
  using item = typename Source::item;
  using options = mix_stream_options;

  mix_stream(const Source& source, const options& o)
      : source_(watched(source, o)),
        options_(o),
        plan_({.seed = o.seed,
               .shards = source.shards(),
               .shuffled = o.window > 0,
               .window = std::max<std::size_t>(1, o.window),
               .equal_epochs = same_samples_each_pass<Source>}) {}
  mix_stream(const mix_stream&) = delete;
  mix_stream& operator=(const mix_stream&) = delete;

  /// Begins pass `pass` of the source. Drops the remaining samples of the previous pass.
  void begin_pass(std::uint64_t pass) {
    waiting_.clear();
    waiting_.begin_epoch();
    reader_.reset();
    order_ = plan_.shards_of(pass);
    pass_ = pass;
    next_shard_ = 0;
  }
  /// Returns a hash of the shards' modification times.
  std::uint32_t times() const { return file_times_of(source_); }
  /// Returns the current pass.
  std::uint64_t pass() const noexcept { return pass_; }
  /// Registers the table that receives the name of each sample. If batches have keys, call this function before the
  /// first pass. `own` is the name of the source in the mix.
  void name_samples(std::shared_ptr<sample_names> names, std::string own) {
    names_ = std::move(names);
    own_name_ = std::move(own);
  }
  /// Selects the older order, for a run whose resume point has version 4 (item/position.hpp). Call this function before
  /// the first pass.
  void keep_older_order() {
    shard_order::options o = plan_.settings();
    o.permutes = false;
    plan_ = shard_order(o);
    waiting_.begin_epoch();
  }
  /// Frees memory. jitter_order withholds all samples until the shuffle window is full. After this call, it passes on
  /// samples earlier. Returns false if no samples were withheld.
  bool release() noexcept { return waiting_.release(); }
  /// Returns the bytes of the samples in the shuffle window.
  std::size_t held_bytes() const noexcept { return waiting_.held_bytes(); }

  /// Returns whether the pass has no more samples. May read samples to find out.
  bool is_exhausted(event_counts& counts) {
    while (!waiting_.ready() && read_one(counts)) {}
    return waiting_.empty();
  }
  /// Returns the next sample and removes it. Requires that is_exhausted() returned false.
  sample<item> take() { return waiting_.pop(); }

 private:
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  /// Reads one sample, or ends a shard. Returns false at the end of the pass.
  bool read_one(event_counts& counts) {
    try {
      if (!reader_) {
        if (next_shard_ == order_.size()) {
          waiting_.end_epoch();
          return false;
        }
        name_shard();
        const as_read opening(*this);
        if constexpr (requires { source_.expect(order_); })
          if (next_shard_ == 0) source_.expect(order_);
        reader_.emplace(source_.open(order_[next_shard_], pass_));
        next_index_ = 0;
      }
      if (std::optional<item> next = read_next()) {
        sample<item> s;
        s.epoch = pass_;
        s.id = sample_id(options_.first_shard + order_[next_shard_], next_index_++);
        s.item = std::move(next);
        if (names_)
          names_->name(s, [&] {
            const located_sample at{order_[next_shard_], next_index_ - 1};
            return sample_names::name_in(source_, at, own_name_);
          });
        waiting_.push(std::move(s));
        return true;
      }
    } catch (...) {
      const std::exception_ptr why = error_located_by([&] {
        error_location at;
        if constexpr (requires { source_.shard_name(order_[next_shard_]); })
          at.shard = source_.shard_name(order_[next_shard_]);
        return at;
      });
      using enum late_data_error::suspect_samples;
      std::rethrow_exception(late_error_with_suspects(why, next_index_ == 0 ? none : some));
    }
    if constexpr (requires { reader_->report(counts); }) reader_->report(counts);
    reader_.reset();
    ++next_shard_;
    return true;
  }

  void name_shard() {
    const std::size_t shard = order_[next_shard_];
    if constexpr (requires { source_.shard_name(shard); }) shard_ = source_.shard_name(shard);
    else shard_ = source_.shards() == 1 ? options_.name : "shard " + std::to_string(shard) + " of " + options_.name;
  }
  static Source watched(const Source& source, const options& o) {
    if constexpr (watchable_source<Source>)
      if (o.reads) return source.watched_in(o.reads);
    return source;
  }
  /// The lifetime of this object counts as reading time, unless the source reports its own reads.
  struct as_read {
    explicit as_read(const mix_stream& of) {
      if constexpr (!watchable_source<Source>)
        if (of.options_.reads) read.emplace(*of.options_.reads, of.shard_);
    }
    std::optional<read_meter::running> read{};
  };
  std::optional<item> read_next() {
    as_read turn(*this);
    std::optional<item> next = reader_->next();
    if (turn.read && next) turn.read->record_bytes(held_bytes_of(*next));
    return next;
  }

  const Source source_;
  const options options_;
  shard_order plan_;
  jitter_order<item> waiting_{plan_};
  std::vector<std::size_t> order_;
  std::optional<reader> reader_;
  std::shared_ptr<sample_names> names_;
  std::string own_name_;
  std::uint64_t pass_ = 0, next_index_ = 0;
  std::size_t next_shard_ = 0;
  std::string shard_;   // name of the open shard
};

}}}   // namespace millrace::detail
