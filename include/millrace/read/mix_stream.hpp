// One of the sources of a mix without an index: its passes, in its own order, with one sample looked at beforehand.
//
//   mix_stream<shards_source> one(source, {.seed = 7, .window = 8192});
//   one.begin_pass(3);
//   while (!one.dry(counts)) use(one.take());
//
// Shuffled as shuffle() right behind the source would: parts, then samples within the window. Errors: what the source
// throws, with the part's name. Threads: belongs to one.
#pragma once

#include <millrace/measure/event_counts.hpp>
#include <millrace/measure/read_meter.hpp>
#include <millrace/order/shard_order.hpp>
#include <millrace/work/sample_names.hpp>

#include <concepts>
#include <memory>
#include <optional>

namespace millrace { inline namespace MILLRACE_ABI {

struct mix_stream_options {
  std::uint64_t seed = 0;
  std::size_t window = 0;         ///< of its shuffle, in samples; 0: none
  std::uint64_t first_shard = 0;   ///< in the list of all sources' parts
  std::shared_ptr<read_meter> reads{};   ///< those of all sources; none: not watched
  std::string name{};                    ///< for who looks on
};

/// Says itself when it waits for storage.
template <class Source>
concept watchable_source = requires(const Source& s, std::shared_ptr<read_meter> m) {
  { s.watched_in(m) } -> std::same_as<Source>;
};

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
               .window = std::max<std::size_t>(1, o.window)}) {}
  mix_stream(const mix_stream&) = delete;
  mix_stream& operator=(const mix_stream&) = delete;

  /// What is left of the pass before is not given any more.
  void begin_pass(std::uint64_t pass) {
    waiting_.clear();
    waiting_.begin_epoch();
    reader_.reset();
    order_ = plan_.shards_of(pass);
    pass_ = pass;
    next_shard_ = 0;
  }
  std::uint64_t pass() const noexcept { return pass_; }
  /// Before the first pass, where batches have keys; `own` is the source's name in the mix.
  void name_samples(std::shared_ptr<sample_names> names, std::string own) {
    names_ = std::move(names);
    own_name_ = std::move(own);
  }
  std::size_t held_bytes() const noexcept { return waiting_.held_bytes(); }

  /// Whether the pass is through.
  bool dry(event_counts& counts) {
    while (!waiting_.ready() && read_one(counts)) {
    }
    return waiting_.empty();
  }
  sample<item> take() { return waiting_.pop(); }

 private:
  using reader = decltype(std::declval<const Source&>().open(std::size_t{}, std::uint64_t{}));

  /// False when there are no more.
  bool read_one(event_counts& counts) {
    try {
      if (!reader_) {
        if (next_shard_ == order_.size()) {
          waiting_.end_epoch();
          return false;
        }
        name_shard();
        const as_read opening(*this);
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
      error_location at;
      if constexpr (requires { source_.shard_name(order_[next_shard_]); })
        at.shard = source_.shard_name(order_[next_shard_]);
      using enum late_data_error::suspect_samples;
      std::rethrow_exception(with_suspects(located_exception(at), next_index_ == 0 ? none : some));
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
  /// Of a source that does not say more all time counts as reading.
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
    if (turn.read && next) turn.read->brought(held_bytes_of(*next));
    return next;
  }

  const Source source_;
  const options options_;
  const shard_order plan_;
  jitter_order<item> waiting_{plan_};
  std::vector<std::size_t> order_;
  std::optional<reader> reader_;
  std::shared_ptr<sample_names> names_;
  std::string own_name_;
  std::uint64_t pass_ = 0, next_index_ = 0;
  std::size_t next_shard_ = 0;
  std::string shard_;   // the one that is open
};

}}  // namespace millrace
