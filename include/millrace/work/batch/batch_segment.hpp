// The last segment of a flow. (A segment is a group of stages that run without a queue between them.) The last segment
// runs the last maps, and renders each sample into its row of a slot (the memory of a batch).
//
//   using columns = mr::detail::columns<&example::pixels, &example::label>;
//   mr::detail::batch_segment<decltype(maps), columns> last(maps, {.batch = {.rows = 256, .batches = &ring}});
//   std::uint64_t p = 0;
//   do last.tickets().wait_for_available(p);
//   while (!last.make_early(p++));   // the first item defines all shapes, and is rendered later
//   ring.start({.rows = 256, .memory = slots_of(last.layout().batch_bytes())});   // the size of a batch is now known
//   last.open_slots();
//
// Errors: an error of a sample is stored with its batch, with shard, key, stage and position. The other samples are
// processed. If the damage_rule accepts the error, the sample's row is filled with zeros or a copy of another row when
// the batch is closed.
// Threads: workers call run(). make_early() is called on one thread only, and only before open_slots(). Cost: no
// allocation per sample.
#pragma once

#include <millrace/item/column/columns.hpp>
#include <millrace/measure/meters/trace_range.hpp>
#include <millrace/work/batch/batch_rows.hpp>
#include <millrace/work/batch/no_row_mixer.hpp>
#include <millrace/work/schedule/dispatcher.hpp>
#include <millrace/work/segment/final_segment.hpp>
#include <millrace/work/segment/fused_maps.hpp>
#include <millrace/work/segment/ticket_input.hpp>

#include <memory>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs `Maps` on samples and renders the results into the columns of a batch.
template <class Maps, class Columns>
class batch_segment final : public batch_rows {
 public:
  using input = typename Maps::input;
  using item = typename Columns::item;
  using mixer = typename row_mixer_of<Columns>::type;

  struct options {
    batch_rows::options batch{};
    typename mixer::options mixing{};
  };

  [[gnu::cold]] batch_segment(Maps chain, const options& o)
      : batch_rows(o.batch, {.together = together, .rendering = Maps::maps > 0 ? Columns::rendering : nullptr}),
        maps_(std::move(chain)),
        input_({.capacity = rows_.ring_capacity,
                .group = rows_.rows,
                .drop_partial = rows_.drop_last,
                .batches = rows_.batches,
                .boundaries = rows_.boundaries,
                .passages = rows_.passages}),
        mixer_(o.mixing) {
    for (std::size_t i = 0; i < o.batch.max_workers; ++i) groups_.push_back(owner<worker_rows>(new group_memory));
    input_.connect(*dispatcher_);
  }

  /// Returns the sink into which the producer puts samples.
  sample_sink<input>& entrance() noexcept { return input_; }
  std::size_t batch_bytes() const override { return columns_.batch_bytes(); }
  std::string describe() const override { return columns_.describe(); }
  /// Returns the columns. Their shapes are fixed after make_early() has returned true.
  const Columns& layout() const noexcept { return columns_; }

  /// Creates the item of a position and fixes all shapes. Requires that the position is available. Returns false if the
  /// position has no item. Throws the error of the sample, with its location.
  [[gnu::cold]] bool make_early(std::uint64_t position) override {
    row_ticket context{position};
    auto& early = static_cast<early_item&>(add_early(new early_item(input_.take(position, context.bytes))));
    sample<input>& s = early.source;
    input_.freed(1, context.bytes);
    const bool in_later_epoch = s.epoch > early_at(0).source.epoch;
    if (s.what == sample<input>::kind::damaged) return add_early_damage(s.item.error(), in_later_epoch);
    if (!s.item && s.what != sample<input>::kind::failed) return false;
    try {
      if (s.what == sample<input>::kind::failed) std::rethrow_exception(s.item.error());
      s.keep_origin();
      context.origin = s.origin;
      early.output.emplace(
          maps_(std::move(*s.item), {.epoch = s.pass, .sample = s.id}, scratch_[0], context.map_at_work));
      s.item.reset();
      context.map_at_work = rendering;
      columns_.fix_shapes(*early.output, rows_.rows, has_flags());
    } catch (...) {
      early.output.reset();
      s.item.reset();
      early.error = located(context);
      if (s.what != sample<input>::kind::failed && damaged_.accepts(early.error))
        return add_early_damage(early.error, in_later_epoch);
      std::rethrow_exception(early.error);
    }
    return true;
  }

  /// Assigns free slots to the next batches and raises the limit of the dispatcher.
  void open_slots() override {
    if constexpr (mixer::mixes) mixer_.start(columns_, *rows_.batches);
    if constexpr (Columns::has_lists)
      if (lists_.empty() && places_lists_)
        for (std::size_t i = 0; i < rows_.batches->count(); ++i) lists_.push_back(columns_.new_lists());
    dispatcher_->set_limit(rows_.batches->open_free() * rows_.rows);
  }

  segment_row_target* rows() noexcept override {
    places_lists_ = false;   // the lengths of rows that other machines compute are not known in advance
    return mixer::mixes ? nullptr : &static_cast<segment_row_target&>(*this);   // g++ 14 warns about a cast of `this`
  }
  std::size_t max_row_bytes() const noexcept override { return columns_.max_row_bytes(); }
  bool has_sample(std::uint64_t ticket) const noexcept override {
    const sample<input>& s = input_.peek(ticket);
    return s.what == sample<input>::kind::item && s.item;
  }
  bool store_row(std::uint64_t ticket, std::span<const std::byte> bytes) noexcept override {
    const std::uint64_t batch = ticket / rows_.rows;
    row_ticket context{.position = ticket};
    if (!columns_.set_row(rows_.batches->data(batch), row_of(batch, context), bytes)) return false;
    try {
      const auto s = input_.use(ticket, context.bytes);
      record_sample(batch, context, *s);
    } catch (...) {
      fail(batch, context);
    }
    input_.freed(1, context.bytes);
    rows_.batches->add_digest(batch, context.digest);
    rows_done(batch, 1);
    return true;
  }

  /// Renders the rows of one claim.
  void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept override {
    const trace_range work("decode");
    const std::uint64_t batch = first / rows_.rows;
    group_sums sums;
    phase_times* phases = Maps::maps > 0 && phases_[worker].next_claim() ? &phases_[worker] : nullptr;
    auto& memory = static_cast<group_memory&>(groups_[worker]);
    for (std::size_t done = 0; done < count; done += group_rows, phases = nullptr) {
      if (count > together && done % fetched_rows == 0) fetch_ahead(first + done, std::min(fetched_rows, count - done));
      render_group(worker, {batch, first + done, std::min(group_rows, count - done), memory, phases}, sums);
    }
    input_.freed(count - sums.early, sums.bytes);
    rows_.batches->add_digest(batch, sums.digest);
  }
  /// Reports the rows of one claim. Closes the batch if all its rows are finished.
  void publish(std::uint64_t first, std::size_t count) noexcept override { rows_done(first / rows_.rows, count); }

 private:
  /// Prefetches the records of the next rows into the cache of this core, because an I/O thread on another core wrote
  /// these records. The function must be inlined, because g++ 12 otherwise removes the call.
  [[gnu::always_inline]] void fetch_ahead(std::uint64_t first, std::size_t count) const noexcept {
    if constexpr (requires(const input& i) { i.prefetch_head(); }) {
      if (first < early_.size()) return;   // samples of make_early()
      for (std::size_t i = 0; i < count; ++i)
        if (const auto& next = input_.peek(first + i).item) next->prefetch_head();
      for (std::size_t i = 0; i < count; ++i)
        if (const auto& next = input_.peek(first + i).item) next->prefetch_fields();
    }
  }

  static constexpr std::size_t together = Columns::together;
  // A worker processes the rows of a group together. Groups of small items are larger, because each group has a fixed
  // cost.
  static constexpr std::size_t group_rows = std::max<std::size_t>(together, sizeof(item) <= 256 ? 8 : 1);

  // Number of tickets whose records are prefetched at once. These records fit into the cache.
  static constexpr std::size_t fetched_rows = (8 + group_rows - 1) / group_rows * group_rows;

  /// Memory of a worker for the rows of a group. The memory is reused, because an allocation costs more than a cheap
  /// row.
  struct alignas(64) group_memory final : worker_rows {
    std::optional<item> items[group_rows];
    row_ticket contexts[group_rows];
  };
  struct group {
    std::uint64_t batch, first;
    std::size_t count;
    group_memory& rows;
    phase_times* phases;   // null if the times are not measured
  };
  struct early_item final : early_row {
    explicit early_item(sample<input>&& s) : source(std::move(s)) {}
    sample<input> source;   // the sample, after its item was moved away
    std::optional<item> output{};
  };
  struct group_sums {
    std::size_t early = 0;   // number of samples that make_early() processed
    std::size_t bytes = 0;   // size of the samples in the input
    std::uint64_t digest = 0;
  };

  using batch_lists = typename Columns::batch_lists;
  /// Returns the places of the rows in the list columns (such as picture_list) of a batch. Returns null if each row has
  /// space for the longest list.
  batch_lists* lists_of([[maybe_unused]] std::uint64_t batch) const noexcept {
    if constexpr (Columns::has_lists)
      if (!lists_.empty()) return lists_[batch % lists_.size()].get();
    return nullptr;
  }
  slot_extent close_columns([[maybe_unused]] std::uint64_t batch, [[maybe_unused]] std::byte* base,
                            [[maybe_unused]] std::size_t rows) const noexcept override {
    if constexpr (Columns::ragged > 0) {
      batch_lists* const lists = lists_of(batch);
      const slot_extent used = columns_.close(base, rows, lists);
      if (lists)
        for (list_places& places : *lists) places.clear();
      return used;
    } else {
      return {};
    }
  }
  std::span<std::uint8_t> flags_at(std::byte* base) const noexcept override { return columns_.flags(base); }
  void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept override {
    columns_.copy_row(base, from, to);
  }
  void clear_row(std::byte* base, std::size_t row) const noexcept override { columns_.clear_row(base, row); }

  /// First runs the maps for the complete group. Then renders the samples whose maps succeeded, with one call for
  /// consecutive samples.
  void render_group(std::size_t worker, const group& of, group_sums& sums) noexcept {
    scratch& memory = scratch_[worker];
    worker_times& times = dispatcher_->times(worker);
    const auto& [batch, first, count, rows, phases] = of;
    const std::uint64_t start = phases ? steady_now_ns() : 0;
    auto& [items, contexts] = rows;
    for (std::size_t i = 0; i < count; ++i) contexts[i] = row_ticket{.position = first + i};
    std::size_t early = 0;
    if (first < early_.size()) [[unlikely]] {
      early = use_early(of);
      sums.early += early;
    }
    for (std::size_t i = early; i < count; ++i) {
      times.at(first + i);
      try {
        prepare(memory, batch, contexts[i], items[i]);
      } catch (...) {
        items[i].reset();   // an item of another shape would be written beyond its row
        fail(batch, contexts[i]);
      }
      sums.bytes += contexts[i].bytes;
    }
    const std::uint64_t mapped = phases ? steady_now_ns() : 0;
    std::byte* const base = rows_.batches->data(batch);
    if constexpr (Columns::has_lists)
      if (batch_lists* const lists = lists_of(batch)) {
        const item* all[group_rows];
        for (std::size_t i = 0; i < count; ++i) all[i] = items[i] ? &*items[i] : nullptr;
        columns_.place_lists({all, count}, row_of(batch, contexts[0]), *lists);
      }
    for (std::size_t i = 0; i < count;) {
      // Consecutive samples that did not fail are in consecutive rows.
      const item* run[group_rows];
      std::size_t n = 0;
      while (i + n < count && items[i + n]) {
        run[n] = &*items[i + n];
        ++n;
      }
      times.at(first + i);
      if (n > 0) render_run(memory, {batch, base, run, contexts + i, n});
      i += n + 1;
    }
    for (std::size_t i = 0; i < count; ++i) {
      sums.digest += contexts[i].digest;
      contexts[i].origin = {};
      items[i].reset();
    }
    if (phases) phases->add(mapped - start, steady_now_ns() - mapped, count);
  }

  void prepare(scratch& memory, std::uint64_t batch, row_ticket& context, std::optional<item>& out) {
    const auto s = input_.use(context.position, context.bytes);
    if (!record_sample(batch, context, *s)) return;
    out.emplace(maps_(std::move(*s->item), {.epoch = s->pass, .sample = s->id}, memory, context.map_at_work));
    context.map_at_work = rendering;
    columns_.check_shapes(*out);
  }

  /// Records the properties of a sample in its batch. Returns false for a void row (without a sample).
  [[gnu::always_inline]] bool record_sample(std::uint64_t batch, row_ticket& context, sample<input>& s) {
    if (row_of(batch, context) == 0) rows_.batches->set_epoch(batch, s.epoch);
    if (s.what == sample<input>::kind::void_row) {
      rows_.batches->add_void_rows(batch, 1);
      return false;
    }
    if (s.item.is_error()) [[unlikely]] {
      context.unreadable = s.what == sample<input>::kind::damaged;
      context.end_of_run = !context.unreadable;
      std::rethrow_exception(s.item.error());
    }
    if constexpr (mixer::mixes) mixer_.set_epoch(batch, s.epoch);   // a void row has no epoch
    context.digest = s.digest;
    s.keep_origin();
    context.origin = std::move(s.origin);
    if (rows_.keys) rows_.batches->keys(batch).set(row_of(batch, context), context.origin.key());
    return true;
  }

  /// Uses the results of make_early() for the first samples of a group. Returns the number of these samples. (The
  /// function is never inlined, because hardly any group has such samples.)
  [[gnu::noinline, gnu::cold]] std::size_t use_early(const group& of) noexcept {
    auto& [items, contexts] = of.rows;
    std::size_t i = 0;
    for (; i < of.count && of.first + i < early_.size(); ++i) {
      early_item& early = early_at(of.first + i);
      try {
        if (record_sample(of.batch, contexts[i], early.source)) {
          if (early.error) std::rethrow_exception(early.error);
          items[i] = std::move(early.output);
        }
      } catch (...) {
        fail(of.batch, contexts[i]);
      }
      early.output.reset();
      contexts[i].map_at_work = rendering;
    }
    return i;
  }

  /// Finished items of consecutive rows.
  struct finished_rows {
    std::uint64_t batch;
    std::byte* base;
    const item* const* items;
    row_ticket* contexts;
    std::size_t count;
  };

  void render_run(scratch& memory, const finished_rows& of) noexcept {
    const std::size_t row = row_of(of.batch, of.contexts[0]);
    try {
      columns_.render({of.items, of.count}, of.base, row, memory, lists_of(of.batch));
      if constexpr (mixer::mixes) mixer_.rendered(of.batch, of.base, row, of.count);
      return;
    } catch (...) {
      if (of.count == 1) return fail(of.batch, of.contexts[0]);
    }
    // At least one of several rows failed. Rendering the rows separately determines which rows failed.
    for (std::size_t i = 0; i < of.count; ++i) {
      try {
        columns_.render({of.items + i, 1}, of.base, row + i, memory, lists_of(of.batch));
        if constexpr (mixer::mixes) mixer_.rendered(of.batch, of.base, row + i, 1);
      } catch (...) {
        fail(of.batch, of.contexts[i]);
      }
    }
  }

  early_item& early_at(std::uint64_t position) const noexcept { return static_cast<early_item&>(early_[position]); }

  const Maps maps_;
  Columns columns_;
  ticket_input<input> input_;
  // The list places of each open batch. The vector is empty if each row has space for the longest list. With
  // damage::replace, each row always has this space.
  std::vector<owner<batch_lists>> lists_{};
  bool places_lists_ = damaged_.policy != damage::replace;
  [[no_unique_address]] mixer mixer_;
};

}}}   // namespace millrace::detail
