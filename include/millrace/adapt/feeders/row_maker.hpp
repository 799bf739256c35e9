// Computes single rows of a flow, in any order and without a session, for a feeder (adapt/feeders.hpp).
//
//   mr::detail::flow_row_maker<decltype(flow)> rows(std::move(flow), options, workers, notices);
//   const auto samples = rows.samples_of({.epoch = 3, .first = 640, .count = 64, .step = 8});
//   rows.compute(samples, worker, body);                 // appends the rows to a body (row_protocol.hpp)
//
// A row has the same bytes as in a session with the same flow and options. The first good sample of epoch 0 defines the
// shapes. Errors: setup_error for rows that cannot be computed alone and for positions that do not exist, and the
// errors of the source. If a sample has an error, the body contains the header of a missing row.
// Threads: samples_of() is synchronized; each worker may call compute() concurrently with its own number.
// Cost: the first call of samples_of() for a pass computes the order of that pass.
#pragma once

#include <millrace/adapt/feeders/row_protocol.hpp>
#include <millrace/base/aligned_allocator.hpp>
#include <millrace/base/clock.hpp>
#include <millrace/deliver/batch.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/order/exact_order.hpp>
#include <millrace/read/run/indexed_run.hpp>
#include <millrace/run/session_errors.hpp>
#include <millrace/run/session_order.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sync/notice_outlet.hpp>

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Computes the rows of one run.
class row_maker {
 public:
  virtual ~row_maker() = default;
  /// Returns the description of the run that a session passes to row_storage::open().
  virtual const row_run& run() const noexcept = 0;
  /// Returns the samples of a range.
  virtual std::vector<ordered_sample> samples_of(const row_range& range) = 0;
  /// Appends the rows of samples. Returns the number of rows that cannot be computed.
  virtual std::size_t compute(std::span<const ordered_sample> samples, std::size_t worker,
                              std::vector<std::byte>& body) = 0;
};

/// The class of the run of a source with an index. It is derived from planned_run, the interface to the order of a run.
template <class Source>
struct planned_run_of {
  using type = typename Source::planned;
};
template <>
struct planned_run_of<shards_source> {
  using type = indexed_run<shard_data>;
};

/// Returns one function that fuses `maps` and the maps that precede batch in `stages`. The recursion moves one map at a
/// time from `stages` to `maps`. `Now` is the type of the items that the first stage in `stages` receives.
template <class In, class Now, class... Maps, class First, class... Rest>
auto feeder_maps_before_batch(std::uint64_t seed, stage_list<Maps...>&& maps, stage_list<First, Rest...>&& stages) {
  if constexpr (is_map<First>)
    return feeder_maps_before_batch<In, typename First::template out<Now>>(
        seed, append(std::move(maps), std::move(stages.first)), std::move(stages.rest));
  else return fused_maps<In, Maps...>({.seed = seed}, std::move(maps));
}

/// Throws the setup_error for a flow whose rows cannot be computed alone.
[[noreturn]] inline void throw_feeder_flow_error(const std::string& got) {
  throw setup_error("feed_rows() needs a flow in which each row can be computed alone: got " + got +
                        ", expected a source with an index, and one row for each sample",
                    "Use plain tars, and a flow that consists of shuffle, map and batch");
}

/// Returns whether each row of a flow can be computed alone, provided that the source of the flow has an index.
template <class Flow>
constexpr bool can_feed_rows() {
  if constexpr (!may_be_planned<Flow>()) return false;
  else
    return has_one_row_per_sample(static_cast<const decltype(Flow::stages)*>(nullptr)) &&
           requires { typename columns_of<typename Flow::item>::type; };
}

/// Returns the maximum number of cursors, from 4 to 64. A cursor returns the samples of an epoch in order. It may
/// contain a permutation of all positions, with 8 bytes for each position. If the result is greater than 4, all cursors
/// together use at most 512 MiB.
constexpr std::size_t cursor_limit(std::uint64_t positions) noexcept {
  return std::clamp<std::uint64_t>((std::uint64_t{64} << 20) / std::max<std::uint64_t>(positions, 1), 4, 64);
}

/// Computes the rows of a flow.
template <class Flow>
class flow_row_maker final : public row_maker {
  using source = typename Flow::source_type;
  using input = typename source::item;
  using planned = typename planned_run_of<source>::type;
  using reader = typename planned::source_type::reader;
  using cursor = typename planned::plan_type::cursor;
  using layout = typename columns_of<typename Flow::item>::type;
  using item = typename layout::item;
  using maps = decltype(feeder_maps_before_batch<input, input>(0, stage_list<>{},
                                                               skip_planned_stages(std::declval<Flow>().stages)));
  static constexpr std::size_t together = layout::together;

 public:
  /// `options` must be a result of checked(), which validates and completes the options of a session.
  flow_row_maker(Flow flow, const session_options& options, std::size_t workers, notice_outlet& notices)
      : flow_row_maker(std::move(flow), facts_of(flow), options, workers, notices) {}

  const row_run& run() const noexcept override { return run_; }

  std::vector<ordered_sample> samples_of(const row_range& range) override {
    std::vector<ordered_sample> all;
    all.reserve(range.count);
    const std::lock_guard lock(mutex_);
    cursor& at = cursor_for(range);
    for (std::uint64_t position = range.first; all.size() < range.count; position += range.step) {
      if (all.empty() || jumps()) at.move_to(range.epoch, position);
      const std::optional<ordered_sample> next = at.next();
      if (!next)
        throw setup_error("a request for rows is not valid: got position " + std::to_string(position) +
                              ", expected less than " + std::to_string(planned_->plan().positions()),
                          "Use the same version of Millrace on all machines");
      all.push_back(*next);
    }
    return all;
  }

  std::size_t compute(std::span<const ordered_sample> samples, std::size_t worker,
                      std::vector<std::byte>& body) override {
    reader from = reader_of(samples);
    std::size_t missing = 0;
    while (!samples.empty()) {
      const auto group = samples.first(std::min(together, samples.size()));
      samples = samples.subspan(group.size());
      if (append_rows(from, group.size(), places_[worker], body)) continue;
      if (group.size() > 1) {   // at least one sample has an error
        for (const ordered_sample& s : group) missing += compute({&s, 1}, worker, body);
      } else {
        append_missing_row(body);
        ++missing;
      }
    }
    return missing;
  }

 private:
  static constexpr std::uint64_t max_damaged = 1'000;   // maximum number of damaged samples before the first good one

  /// The memory of a worker.
  struct alignas(64) place {
    scratch memory;
    aligned_vector<std::byte> slot;
    std::vector<std::byte> row;
  };
  struct known_cursor {
    row_range key;   // the epoch, the rank and the number of ranks
    cursor at;
  };

  flow_row_maker(Flow&& flow, flow_facts facts, const session_options& options, std::size_t workers,
                 notice_outlet& notices)
      : source_(std::move(flow.source)),
        planned_(plan(facts, options, notices)),
        maps_(feeder_maps_before_batch<input, input>(flow.seed, stage_list<>{},
                                                     skip_planned_stages(std::move(flow.stages)))),
        places_(workers) {
    learn_shapes(facts.rows);
    run_.order = planned_->order_text();
    run_.max_row_bytes = columns_.max_row_bytes();
    for (place& p : places_) p.slot.resize(columns_.batch_bytes());
  }

  owner<planned> plan(flow_facts& facts, const session_options& options, notice_outlet& notices) {
    facts.has_index = is_planned<Flow>(source_, options.on_damage.policy != damage::fail, notices);
    if (!facts.has_index) throw_feeder_flow_error("an order without an index");
    // With a budget of 0 bytes, the run uses no memory for samples that are read before they are requested. A feeder
    // may never need such samples.
    owner<planned_run> run = planned_run_for<Flow>(source_, facts, {.session = options, .budget_bytes = 0});
    return owner<planned>(static_cast<planned*>(run.release()));
  }

  /// Sets the shapes from the first good sample, as run_core::learn_shapes() does. Ignores damage of earlier samples:
  /// the trainer also reads these samples, and ends if its options do not tolerate the damage.
  void learn_shapes(std::size_t rows) {
    for (std::uint64_t position = 0;; ++position) try {
        const auto samples = samples_of({.first = position, .count = 1});
        reader from = reader_of(samples);
        const item first = item_of(from, places_.front().memory);
        layout described;
        described.fix_shapes(first, rows);
        run_.columns = described.describe();
        columns_.fix_shapes(first, together);
        return;
      } catch (const setup_error&) {
        throw;
      } catch (...) {
        if (position == max_damaged || position + 1 == planned_->plan().positions()) throw;
      }
  }

  reader reader_of(std::span<const ordered_sample> samples) const {
    return {planned_->data(), planned_->plan().positions(), {samples.begin(), samples.end()}};
  }

  item item_of(reader& from, scratch& memory) const {
    sample<input> s;
    try {
      s.item = from.next();
    } catch (...) {
      from.skip();
      throw;
    }
    from.stamp(s);
    s.keep_origin();
    std::size_t map = 0;
    return maps_(std::move(*s.item), {.epoch = s.pass, .sample = s.id}, memory, map);
  }

  /// Appends the rows of the next `count` samples, rendered together. Returns false if one of them has an error.
  bool append_rows(reader& from, std::size_t count, place& here, std::vector<std::byte>& body) const {
    std::vector<item> items;
    items.reserve(count);
    for (std::size_t i = 0; i < count; ++i) try {
        items.push_back(item_of(from, here.memory));
      } catch (...) {}   // continues, because the reader must move past all samples
    if (items.size() < count) return false;
    const item* all[together];
    for (std::size_t i = 0; i < count; ++i) all[i] = &items[i];
    try {
      for (const item& each : items) columns_.check_shapes(each);
      columns_.render({all, count}, here.slot.data(), 0, here.memory);
    } catch (...) {
      return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
      here.row.clear();
      columns_.append_row(here.slot.data(), i, here.row);
      append_row(body, here.row);
    }
    return true;
  }

  /// Returns whether a cursor reaches any position at the same cost, because it contains the permutation of a pass.
  bool jumps() const noexcept {
    const auto& plan = planned_->plan();
    if constexpr (requires { plan.permutes(); }) return plan.permutes();
    else return false;
  }
  /// Returns the cursor for the epoch and the rank of `range`, or only for the epoch if jumps() is true. Creates the
  /// cursor if it does not exist.
  cursor& cursor_for(const row_range& range) {
    const row_range key = jumps()
                              ? row_range{.epoch = range.epoch}
                              : row_range{.epoch = range.epoch, .first = range.first % range.step, .step = range.step};
    const auto it = std::find_if(cursors_.begin(), cursors_.end(), [&](const auto& c) { return c.key == key; });
    if (it != cursors_.end()) {
      cursors_.splice(cursors_.begin(), cursors_, it);
    } else {
      const world rank{.rank = static_cast<std::size_t>(key.first), .size = key.step};
      cursors_.push_front({key, cursor(planned_->plan(), {.world = rank, .epoch = range.epoch})});
      if (cursors_.size() > cursor_limit(planned_->plan().positions())) cursors_.pop_back();
    }
    return cursors_.front().at;
  }

  const source source_;
  const owner<planned> planned_;
  const maps maps_;
  layout columns_;
  row_run run_;
  std::vector<place> places_;   // one for each worker
  std::mutex mutex_;
  std::list<known_cursor> cursors_;   // guarded by mutex_; the most recently used cursor is first
};

// A request to a feeder, and the connection of its client.
//
// Errors: none. Threads: the mutex of the feeder_server guards client_connection and client_request. `socket` needs no
// lock, because it never changes.

/// The connection of a client.
struct client_connection {
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};

  int socket;
  std::uint64_t end_ns = no_limit;   ///< deadline for the client's next request, or for its receipt of the rows

  void set_limit(std::uint64_t ns) noexcept { end_ns = steady_now_ns() + ns; }
  /// Returns whether the client has closed the connection.
  bool is_closed() const noexcept {
    pollfd events{socket, POLLRDHUP, 0};
    return ::poll(&events, 1, 0) > 0;
  }
};

/// A request whose headers were received, and its answer.
struct client_request {
  client_connection& from;
  feeder_decision decision;
  std::vector<ordered_sample> samples{};
  std::size_t part_rows = 1, next = 0, missing = 0;   ///< rows per part; next part to compute; parts not yet computed
  std::vector<std::vector<std::byte>> parts{};        ///< the computed rows, as pieces of the body
  unsigned status = 200;

  std::uint64_t rank() const noexcept { return decision.range.first % decision.range.step; }
};

}}}   // namespace millrace::detail
