// The last segment: runs the remaining maps and renders each sample directly into its row of a slot.
//
//   using columns = mr::detail::columns<&example::pixels, &example::label>;
//   mr::detail::batch_segment<decltype(maps), columns> last(maps, {.rows = 256, .workers = &pool, .batches = &ring});
//   std::uint64_t p = 0;
//   do last.tickets().wait_for_available(p);
//   while (!last.make_early(p++));   // the lowest position that has an item fixes all shapes; it is rendered later
//   ring.start({.rows = 256, .memory = slots_of(last.layout().batch_bytes())});   // the size of a batch is known now
//   last.open_slots();
//
// Errors: an error of a sample is kept with its batch. It names shard, key, stage and position. The other samples
// continue. If the damage_rule takes the error, the sample's row is filled when the batch is closed.
// Threads: workers call run(). One thread calls make_early(), before open_slots(). Costs: no allocation per sample.
#pragma once

#include <millrace/item/columns.hpp>
#include <millrace/measure/trace_range.hpp>
#include <millrace/work/batch_rows.hpp>
#include <millrace/work/dispatcher.hpp>
#include <millrace/work/final_segment.hpp>
#include <millrace/work/fused_maps.hpp>
#include <millrace/work/no_mixer.hpp>
#include <millrace/work/ticket_input.hpp>

#include <array>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs `Maps` on samples and renders the results into the columns of a batch.
template <class Maps, class Columns>
class batch_segment final : public dispatcher_work,
                            public pipeline_node,
                            public final_segment,
                            private batch_rows {
 public:
  using input = typename Maps::input;
  using item = typename Columns::item;
  using mixer = typename mixer_of<Columns>::type;

  struct options {
    std::size_t rows = 1;   ///< rows of a batch
    bool drop_last = true, pad_last = false;   ///< pad_last fills up a short batch with masked rows
    bool keys = false;   ///< keeps the keys of its rows with each batch
    std::size_t max_workers = 1;   ///< number of workers
    executor* workers = nullptr;   ///< null: advance() does the work
    std::size_t ring_capacity = 64;   ///< samples in the input, at least
    batch_ring* batches = nullptr;
    batch_borders borders{};
    const damage_rule* damaged = nullptr;   ///< null: damage is an error
    typename mixer::options mixing{};
  };

  [[gnu::cold]] batch_segment(Maps chain, const options& o)
      : batch_rows({.rows = o.rows, .pad_last = o.pad_last, .keys = o.keys, .batches = o.batches,
                    .damaged = o.damaged}),
        maps_(std::move(chain)),
        input_({.capacity = o.ring_capacity, .group = o.rows, .drop_partial = o.drop_last, .batches = o.batches,
                .borders = o.borders}),
        scratch_(o.max_workers),
        groups_(o.max_workers),
        phases_(o.max_workers),
        mixer_(o.mixing),
        dispatcher_(std::make_shared<dispatcher>(
            *this, dispatcher::options{.max_workers = o.max_workers, .together = together, .group = o.rows})) {
    dispatcher_->attach(o.workers);
    input_.connect(*dispatcher_);
  }

  /// Returns the sink that the producer puts samples into.
  sample_sink<input>& entrance() noexcept { return input_; }
  dispatcher& tickets() noexcept override { return *dispatcher_; }
  std::size_t batch_bytes() const override { return columns_.batch_bytes(); }
  std::string describe() const override { return columns_.describe(); }
  /// Returns the columns; their shapes are fixed once make_early() has returned true.
  const Columns& layout() const noexcept { return columns_; }

  /// Makes the item of a position, and fixes all shapes. Call it once that position is available. Throws the error of
  /// the sample, with its location.
  [[gnu::cold]] bool make_early(std::uint64_t position) override {
    row_ticket context{position};
    early_.push_back(std::make_unique<early_item>(input_.take(position, context.bytes)));
    auto& [s, made, error] = *early_.back();
    input_.freed(1, context.bytes);
    if (s.what == sample<input>::kind::damaged) return add_early_damage(s.item.error(), s);
    if (!s.item && s.what != sample<input>::kind::failed) return false;
    try {
      if (s.what == sample<input>::kind::failed) std::rethrow_exception(s.item.error());
      s.keep_origin();
      context.origin = s.origin;
      made.emplace(maps_(std::move(*s.item), {.epoch = s.pass, .sample = s.id}, scratch_[0], context.map_at_work));
      s.item.reset();
      context.map_at_work = rendering;
      columns_.fix_shapes(*made, rows_.rows, has_flags());
    } catch (...) {
      made.reset();
      s.item.reset();
      error = located(context);
      if (s.what != sample<input>::kind::failed && damaged_.takes(error)) return add_early_damage(error, s);
      std::rethrow_exception(error);
    }
    return true;
  }

  /// Assigns free slots to the next batches and raises the limit of the workers.
  void open_slots() override {
    if constexpr (mixer::mixes) mixer_.start(columns_, *rows_.batches);
    dispatcher_->set_limit(rows_.batches->open_free() * rows_.rows);
  }

  /// Renders the rows of one claim.
  void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept override {
    const trace_range work("decode");
    const std::uint64_t batch = first / rows_.rows;
    group_sums sums;
    fetch_ahead(first, count);
    phase_times* look = Maps::maps > 0 && phases_[worker].next_claim() ? &phases_[worker] : nullptr;
    for (std::size_t done = 0; done < count; done += group_rows, look = nullptr)
      render_group(worker, {batch, first + done, std::min(group_rows, count - done), look}, sums);
    input_.freed(count - sums.early, sums.bytes);
    rows_.batches->add_digest(batch, sums.digest);
    const auto close = [&](std::byte* base, std::size_t rows) {
      if (has_flags()) fill_rows(batch, base, rows);
      const std::size_t all = rows_.pad_last ? rows_.rows : rows;
      batch_extent e;
      if constexpr (Columns::ragged > 0) e = columns_.close(base, all);
      e.padding_rows = all - rows;
      return e;
    };
    rows_.batches->rows_done(batch, count, close);
  }

  void space_freed() noexcept override { open_slots(); }   // a slot was freed

  void count_into(event_counts& counts) noexcept override {
    for (auto& s : scratch_) s.count_into(counts);
  }
  void add_to(flow_figures& f, std::uint64_t now_ns) const override {
    stage_figures s = dispatcher_->figures("workers", now_ns);
    if constexpr (Maps::maps > 0) add_phases(s, phases_, Columns::rendering);
    f.stages.push_back(std::move(s));
  }
  void add_to(timeline& t, std::uint64_t start_ns) const override { dispatcher_->add_spans(t, "work", start_ns); }
  std::string waits(std::uint64_t now_ns) const override { return "workers: " + dispatcher_->waits(now_ns); }
  void start() override {}
  bool advance() override { return dispatcher_->advance(); }
  void set_active(const concurrency_counts& open) override { dispatcher_->set_active(open.workers); }
  void stop() noexcept override { dispatcher_->stop(); }
  void join() noexcept override { dispatcher_->join(); }

 private:
  /// Prefetches the records of a claim. Another core read them long ago, so it is better to wait for all at once.
  /// (Always inlined: g++ 12 drops the call otherwise, because it has no other effect.)
  [[gnu::always_inline]] void fetch_ahead(std::uint64_t first, std::size_t count) const noexcept {
    if constexpr (requires(const input& i) { i.prefetch_head(); }) {
      if (count <= together || first < early_.size()) return;   // expensive tickets; samples that were taken early
      for (std::size_t i = 0; i < count; ++i)
        if (const auto& item = input_.peek(first + i).item) item->prefetch_head();
      for (std::size_t i = 0; i < count; ++i)
        if (const auto& item = input_.peek(first + i).item) item->prefetch_fields();
    }
  }

  static constexpr std::size_t together = Columns::together;
  // Cheap tickets are claimed many at once. Several of them share the cost of a group, if that takes little memory.
  static constexpr std::size_t group_rows = std::max<std::size_t>(together, sizeof(item) <= 256 ? 8 : 1);

  struct group {
    std::uint64_t batch, first;
    std::size_t count;
    phase_times* look;   // null: the times are not measured
  };
  /// Memory of a worker for the rows of a group. It is kept: making it anew costs more than a cheap row.
  struct alignas(64) group_memory {
    std::array<std::optional<item>, group_rows> items;
    std::array<row_ticket, group_rows> contexts;
  };
  struct early_item {
    explicit early_item(sample<input>&& s) : taken(std::move(s)) {}
    sample<input> taken;   // without its item
    std::optional<item> made{};
    std::exception_ptr error{};
  };
  struct group_sums {
    std::size_t early = 0;   // taken by make_early()
    std::size_t bytes = 0;   // held by the inputs
    std::uint64_t digest = 0;
  };

  /// Remembers a damaged sample that was met before there were slots. Returns false: it gives no shapes.
  bool add_early_damage(const std::exception_ptr& error, const sample<input>& s) {
    damaged_.add_early(early_damaged_, error, s.epoch > early_.front()->taken.epoch);
    return false;
  }

  std::span<std::uint8_t> flags_at(std::byte* base) const noexcept override { return columns_.flags(base); }
  void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept override {
    columns_.copy_row(base, from, to);
  }
  void clear_row(std::byte* base, std::size_t row) const noexcept override { columns_.clear_row(base, row); }

  /// Runs the maps for the whole group first. Then renders the samples that did not fail in one go.
  void render_group(std::size_t worker, const group& of, group_sums& sums) noexcept {
    scratch& memory = scratch_[worker];
    const auto [batch, first, count, look] = of;
    const std::uint64_t start = look ? steady_now_ns() : 0;
    auto& [items, contexts] = groups_[worker];
    for (std::size_t i = 0; i < count; ++i) contexts[i] = row_ticket{.position = first + i};
    std::size_t early = 0;
    if (first < early_.size()) [[unlikely]] {
      early = take_early(of, items, contexts);
      sums.early += early;
    }
    for (std::size_t i = early; i < count; ++i) {
      dispatcher_->at(worker, first + i);
      try {
        prepare(memory, batch, contexts[i], items[i]);
      } catch (...) {
        items[i].reset();   // an item of another shape would be written beyond its row
        fail(batch, contexts[i]);
      }
      sums.bytes += contexts[i].bytes;
    }
    const std::uint64_t mapped = look ? steady_now_ns() : 0;
    std::byte* const base = rows_.batches->data(batch);
    for (std::size_t i = 0; i < count;) {
      // Consecutive samples that did not fail lie in consecutive rows.
      std::array<const item*, group_rows> run{};
      std::size_t n = 0;
      while (i + n < count && items[i + n]) {
        run[n] = &*items[i + n];
        ++n;
      }
      dispatcher_->at(worker, first + i);
      if (n > 0) render_run(memory, batch, base, std::span(run).first(n), std::span(contexts).subspan(i, n));
      i += n + 1;
    }
    for (std::size_t i = 0; i < count; ++i) {
      sums.digest += contexts[i].digest;
      contexts[i].origin = {};
      items[i].reset();
    }
    if (look) look->add(mapped - start, steady_now_ns() - mapped, count);
  }

  void prepare(scratch& memory, std::uint64_t batch, row_ticket& context, std::optional<item>& out) {
    const auto s = input_.use(context.position, context.bytes);
    if (!enter(batch, context, *s)) return;
    out.emplace(maps_(std::move(*s->item), {.epoch = s->pass, .sample = s->id}, memory, context.map_at_work));
    context.map_at_work = rendering;
    columns_.check_shapes(*out);
  }

  /// Enters what the batch keeps of a sample. Returns false for a void row.
  [[gnu::always_inline]] bool enter(std::uint64_t batch, row_ticket& context, sample<input>& s) {
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

  /// Takes over the first positions of a group, as far as make_early() took them. Returns their number.
  /// (Never inlined, because hardly any group has some.)
  [[gnu::noinline, gnu::cold]] std::size_t take_early(const group& of, std::span<std::optional<item>, group_rows> items,
                                           std::span<row_ticket, group_rows> contexts) noexcept {
    std::size_t i = 0;
    for (; i < of.count && of.first + i < early_.size(); ++i) {
      auto& [s, made, error] = *early_[of.first + i];
      try {
        if (enter(of.batch, contexts[i], s)) {
          if (error) std::rethrow_exception(error);
          items[i] = std::move(made);
        }
      } catch (...) {
        fail(of.batch, contexts[i]);
      }
      made.reset();
      contexts[i].map_at_work = rendering;
    }
    return i;
  }

  void render_run(scratch& memory, std::uint64_t batch, std::byte* base, std::span<const item* const> run,
                  std::span<row_ticket> contexts) noexcept {
    const std::size_t row = row_of(batch, contexts[0]);
    try {
      columns_.render(run, base, row, memory);
      if constexpr (mixer::mixes) mixer_.rendered(batch, base, row, run.size());
      return;
    } catch (...) {
      if (run.size() == 1) return fail(batch, contexts[0]);
    }
    // One of several rows failed. Rendered one by one, each row shows whether it is the one.
    for (std::size_t i = 0; i < run.size(); ++i) {
      try {
        columns_.render(run.subspan(i, 1), base, row + i, memory);
        if constexpr (mixer::mixes) mixer_.rendered(batch, base, row + i, 1);
      } catch (...) {
        fail(batch, contexts[i]);
      }
    }
  }

  const Maps maps_;
  Columns columns_;
  ticket_input<input> input_;
  std::vector<scratch> scratch_;
  std::vector<group_memory> groups_;   // by worker
  std::vector<phase_times> phases_;   // by worker
  [[no_unique_address]] mixer mixer_;
  std::shared_ptr<dispatcher> dispatcher_;
  std::vector<std::unique_ptr<early_item>> early_;   // by position; constant once the workers run, but for its elements
  std::uint64_t early_damaged_ = 0;
};

}}}  // namespace millrace::detail
