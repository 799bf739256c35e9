// Mixes several sources without an index into one stream. For each sample, a mix_pattern selects the source.
//
//   mr::detail::mix_streams in(rule, 7, shards, lines);                      // 7: the seed
//   auto reader = in.open(0, epoch);
//   while (auto item = reader.next()) use(item->number(), item->value);      // number of the source, and its item
//
// order/mix_plan.hpp describes the modes stop, reweight and repeat, which apply when a source runs out. With `repeat`,
// the first epoch ends when every source has run out at least once. All later epochs have the same number of samples.
// Each source is shuffled in the same way as by a shuffle() stage directly after the source. One thread reads all
// sources, one shard of each source at a time. Reading cannot begin in a later pass: a resumed run reads all earlier
// passes again.
// Errors: the errors of the sources, with the name of the shard added. setup_error for a source without samples, and
// for shuffle windows that need more than a quarter of the memory that this process may use. Threads: as for every
// source (flow/stage.hpp).
#pragma once

#include <millrace/base/digest.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/world.hpp>
#include <millrace/base/text.hpp>
#include <millrace/item/position.hpp>
#include <millrace/order/mix_schedule.hpp>
#include <millrace/read/run/data_identity.hpp>
#include <millrace/read/mix/mix_stream.hpp>
#include <millrace/read/mix/mixed_item.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The streams of sources of different types.
template <class... Sources>
struct stream_tuple {
  using item = typename item_of_mix<typename Sources::item...>::type;
  static constexpr bool watched = (watchable_source<Sources> || ...);

  template <class OptionsFor>
  stream_tuple(const OptionsFor& options_for, const Sources&... sources)
      : all{std::make_unique<mix_stream<Sources>>(sources, options_for(sources))...} {}
  void check() const noexcept {}

  template <class F>
  void for_each(F act) {
    std::apply([&](auto&... s) { (act(*s), ...); }, all);
  }
  /// Calls act(stream, convert) for a source. convert(item of the stream) returns an item of the mix.
  template <std::size_t Index = 0, class F>
  void with(std::size_t source, const F& act) {
    if constexpr (Index + 1 < sizeof...(Sources))
      if (source != Index) return with<Index + 1>(source, act);
    act(*std::get<Index>(all),
        [](auto&& one) { return item_of_mix<typename Sources::item...>::template make<Index>(std::move(one)); });
  }

  std::tuple<std::unique_ptr<mix_stream<Sources>>...> all;
};

/// The streams of any number of sources of the same type.
template <class Source>
struct mix_stream_list {
  static constexpr bool watched = watchable_source<Source>;
  static constexpr bool of_records = std::is_same_v<typename Source::item, record>;
  using item = std::conditional_t<of_records, mixed_record, listed_item<typename Source::item>>;
  static constexpr std::size_t most = 256;   // maximum number of sources; each source may keep a file open

  template <class OptionsFor>
  mix_stream_list(const OptionsFor& options_for, const std::vector<Source>& sources) {
    for (const Source& source : sources)
      all.push_back(std::make_unique<mix_stream<Source>>(source, options_for(source)));
  }
  /// Throws setup_error if the streams could keep too many files open.
  void check() const {
    if (all.size() > most)
      throw setup_error("a mix of streamed sources has too many sources: got " + std::to_string(all.size()) +
                            ", expected at most " + std::to_string(most),
                        "Use shards() of plain tars with an index, or combine sources of equal weights into one list");
  }

  template <class F>
  void for_each(F act) {
    for (const auto& stream : all) act(*stream);
  }
  /// Calls act(stream, convert) for a source. convert(item of the stream) returns an item of the mix.
  template <class F>
  void with(std::size_t source, const F& act) {
    act(*all[source], [source](typename Source::item&& one) { return item{std::move(one), source}; });
  }

  std::vector<std::unique_ptr<mix_stream<Source>>> all;
};

/// Mixes several sources without an index, in proportion to their weights. `Streams` is a stream_tuple or a
/// mix_stream_list.
template <class Streams>
class mix_streams {
 public:
  using item = typename Streams::item;
  static constexpr bool one_reader_at_a_time = true;
  static constexpr bool begins_at_pass_0 = true;
  static constexpr bool watched = Streams::watched;

  /// `sources` are the sources of the mix, or a single vector of sources.
  template <class... Sources>
  mix_streams(mix_rule rule, std::uint64_t seed, const Sources&... sources)
      : state_(std::make_shared<state>(std::move(rule), seed, sources...)) {}

  /// Returns 1: all sources together are one shard.
  std::size_t shards() const noexcept { return 1; }
  /// Returns the names of the sources, and a digest of the settings and shard names that determine the order. Mixes
  /// with equal texts have the same order.
  std::string shard_name(std::size_t) const { return state_->name; }
  /// Returns a hash of all shards' modification times.
  std::int64_t shard_modified_ns(std::size_t) const {
    std::uint64_t times = 0;
    state_->streams->for_each([&times](const auto& stream) {
      if (const std::uint32_t of_source = stream.times()) times = combine_keys(times, of_source);
    });
    return static_cast<std::int64_t>(times);
  }

  /// Returns the meter of all sources. Requires at least one source that reports its own reads.
  read_meter& reads() const noexcept
    requires watched
  {
    return *state_->reads;
  }

  /// Registers the table that receives the name of each sample. Call it before the first pass, if batches have keys.
  void name_samples(const std::shared_ptr<sample_names>& names) const {
    std::size_t i = 0;
    state_->streams->for_each([&](auto& stream) { stream.name_samples(names, state_->rule.sources[i++].name); });
  }

  /// Selects the older order, for a run whose resume point has an older version (item/position.hpp). Call this function
  /// before the first pass.
  void keep_older_order() const {
    state_->streams->for_each([](auto& stream) { stream.keep_older_order(); });
  }

  class reader;
  /// Returns the reader of an epoch. Epochs must be opened in order, from 0.
  reader open(std::size_t, std::uint64_t epoch) const {
    state_->begin(epoch);
    return reader(state_);
  }

 private:
  struct identity {
    std::uint64_t id = 0, pass = 0;
    record name{};   // empty if batches have no keys
  };

  struct state {
    template <class... Sources>
    state(mix_rule r, std::uint64_t seed, const Sources&... sources) : rule(std::move(r)) {
      std::size_t i = 0;
      for (mix_source_spec& s : rule.sources) {
        if (s.name.empty()) s.name = "source " + std::to_string(i);
        name += (i++ == 0 ? "mix of " : ", ") + s.name;
      }
      const std::vector<std::uint64_t> keys = mix_schedule::weight_keys(rule.sources);
      schedule = mix_schedule::of(rule, {});
      i = 0;
      std::uint64_t first_shard = 0, digest = static_cast<std::uint64_t>(rule.on_exhausted);
      const auto options_for = [&](const auto& source) {
        const mix_source_spec& s = rule.sources[i];
        const mix_stream_options o{.seed = combine_keys(combine_keys(seed, i), s.seed),
                                   .window = s.window,
                                   .first_shard = first_shard,
                                   .reads = reads,
                                   .name = s.name};
        digest = combine_keys(combine_keys(combine_keys(digest, o.seed), o.window), keys[i]);
        for (std::size_t shard = 0; shard < source.shards(); ++shard)
          if constexpr (requires { source.shard_name(shard); })
            digest = digest_bytes(bytes_of(source.shard_name(shard)), digest);
        first_shard += source.shards();
        ++i;
        return o;
      };
      streams.emplace(options_for, sources...);
      name += ", " + hex(digest, 16);
    }

    void begin(std::uint64_t epoch) {
      counts.emplace();
      over = false;
      delivered = 0;
      if (rule.on_exhausted == exhausted::repeat && epoch > 0) return;
      streams->check();
      streams->for_each([epoch](auto& stream) { stream.begin_pass(epoch); });
      if (shares.empty())
        shares = schedule ? std::vector<std::uint64_t>(rule.sources.size(), 1) : mix_pattern::shares_of(rule.sources);
      left = shares;
      pattern = mix_pattern(left);
      turn = 0;
    }

    std::optional<item> next(identity& who) {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
      if (over) return std::nullopt;
      std::optional<item> result;
      const std::size_t source = next_source();
      streams->with(source,
                    [&](auto& stream, const auto& convert) { take_from(stream, source, convert, result, who); });
      return result;
    }

    std::size_t next_source() {
      if (!schedule) return pattern.source_at(turn++);
      if (!phase || turn >= phase->end) phase = schedule->phase_at(turn);
      return phase->pattern.source_at(turn++ - phase->begin);
    }

    template <class Stream, class Convert>
    void take_from(Stream& stream, std::size_t source, const Convert& convert, std::optional<item>& result,
                   identity& who) {
      if (stream.is_exhausted(*counts))
        throw setup_error(rule.sources[source].name + " of the mix has no sample",
                          "Omit the source, or check its data");
      auto s = stream.take();
      who = {s.id, s.epoch, std::move(s.origin)};
      result.emplace(convert(std::move(*s.item)));
      ++delivered;
      // An error of the next sample must not prevent the delivery of this sample.
      try {
        if (stream.is_exhausted(*counts)) after_last(source, [&] { stream.begin_pass(stream.pass() + 1); });
        if (length > 0 && delivered == length) over = true;
        check_memory();
      } catch (...) {
        failure = std::current_exception();
      }
    }

    template <class Restart>
    void after_last(std::size_t source, const Restart& restart) {
      left[source] = 0;
      const bool all_exhausted = std::all_of(left.begin(), left.end(), [](std::uint64_t share) { return share == 0; });
      if (rule.on_exhausted == exhausted::repeat) {
        restart();
        if (length == 0 && all_exhausted) length = delivered;
      } else if (rule.on_exhausted == exhausted::stop || all_exhausted) {
        over = true;
      } else {
        pattern = mix_pattern(left);
        turn = 0;
      }
    }

    void check_memory() {
      std::size_t bytes = 0;
      streams->for_each([&](const auto& stream) { bytes += stream.held_bytes(); });
      if (bytes <= max_bytes) return;
      int released = 0;
      streams->for_each([&](auto& stream) { released += stream.release() ? 1 : 0; });
      if (released == 0)
        throw setup_error("the shuffle windows of the mix are too large: got " + std::to_string(bytes) +
                              " bytes, expected at most a quarter of the memory that this process may use",
                          "Use smaller windows");
    }

    mix_rule rule;
    std::shared_ptr<read_meter> reads = watched ? make_shared_object<read_meter>() : nullptr;
    std::string name;
    std::vector<std::uint64_t> shares, left;   // left: the shares, with 0 for each source that has run out
    mix_pattern pattern{{1}};
    std::shared_ptr<const mix_schedule> schedule;   // null if the weights are constant
    std::shared_ptr<const mix_phase> phase;
    std::optional<Streams> streams;
    std::optional<event_counts> counts;   // events of the current epoch
    const std::size_t max_bytes = share_of_machine(processes_of_machine({})).memory_bytes / 4;
    std::uint64_t turn = 0, delivered = 0;   // position in the pattern; number of samples delivered in this epoch
    std::uint64_t length = 0;   // with `repeat`: number of samples of an epoch; 0 before the first epoch has ended
    bool over = false;
    std::exception_ptr failure;
  };

 public:
  class reader {
   public:
    explicit reader(std::shared_ptr<state> from) : from_(std::move(from)) {}

    /// Returns the next item, or nothing at the end of the epoch.
    std::optional<item> next() { return from_->next(last_); }
    /// Stores in `s` the identity of the last item that next() returned.
    void stamp(sample<item>& s) const noexcept {
      s.id = last_.id;
      s.pass = last_.pass;
      s.origin = last_.name;
    }
    /// Adds the events of the epoch to `to`.
    void report(event_counts& to) const {
      for (const event_count& c : from_->counts->counts()) to.count(c.what, c.times);
      for (notice& n : from_->counts->take_posted()) to.post(std::move(n));
    }

   private:
    std::shared_ptr<state> from_;
    identity last_;
  };

 private:
  std::shared_ptr<state> state_;
};
template <class... Sources>
mix_streams(mix_rule, std::uint64_t, const Sources&...) -> mix_streams<stream_tuple<Sources...>>;

}}}   // namespace millrace::detail
