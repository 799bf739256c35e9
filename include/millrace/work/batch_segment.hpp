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
#include <millrace/measure/phase_times.hpp>
#include <millrace/measure/trace_range.hpp>
#include <millrace/work/damage_rule.hpp>
#include <millrace/work/dispatcher.hpp>
#include <millrace/work/final_segment.hpp>
#include <millrace/work/fused_maps.hpp>
#include <millrace/work/no_mixer.hpp>
#include <millrace/work/ticket_input.hpp>

#include <array>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Runs `Maps` on samples and renders the results into the columns of a batch.
template <class Maps, class Columns>
class batch_segment final : public dispatcher_work, public pipeline_node, public final_segment {
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
    damage_rule damaged{};
    typename mixer::options mixing{};
  };

  batch_segment(Maps chain, options o)
      : maps_(std::move(chain)),
        options_(o),
        input_({.capacity = o.ring_capacity, .group = o.rows, .drop_partial = o.drop_last, .batches = o.batches,
                .borders = o.borders}),
        scratch_(o.max_workers),
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
  bool make_early(std::uint64_t position) override {
    current_ticket context{position};
    early_.push_back({.taken = input_.take(position, context.bytes), .made = {}, .error = {}});
    auto& [s, made, error] = early_.back();
    input_.freed(1, context.bytes);
    if (s.what == sample<input>::kind::damaged) return add_early_damage(s.error, s);
    if (!s.item && s.what != sample<input>::kind::failed) return false;
    try {
      if (s.what == sample<input>::kind::failed) std::rethrow_exception(s.error);
      s.keep_origin();
      context.origin = s.origin;
      made.emplace(maps_(std::move(*s.item), {.epoch = s.pass, .sample = s.id}, scratch_[0], context.map_at_work));
      s.item.reset();
      context.map_at_work = rendering;
      columns_.fix_shapes(*made, options_.rows, has_flags());
    } catch (...) {
      made.reset();
      s.item.reset();
      error = located_by([&] { return where(context); });
      if (s.what != sample<input>::kind::failed && options_.damaged.takes(error)) return add_early_damage(error, s);
      std::rethrow_exception(error);
    }
    return true;
  }

  /// Assigns free slots to the next batches and raises the limit of the workers.
  void open_slots() override {
    if constexpr (mixer::mixes) mixer_.start(columns_, *options_.batches);
    dispatcher_->set_limit(options_.batches->open_free() * options_.rows);
  }

  /// Renders the rows of one claim.
  void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept override {
    const trace_range work("decode");
    const std::uint64_t batch = first / options_.rows;
    group_sums sums;
    fetch_ahead(first, count);
    phase_times* look = Maps::maps > 0 && phases_[worker].next_claim() ? &phases_[worker] : nullptr;
    for (std::size_t done = 0; done < count; done += together, look = nullptr)
      render_group(worker, {batch, first + done, std::min(together, count - done), look}, sums);
    input_.freed(count - sums.early, sums.bytes);
    options_.batches->add_digest(batch, sums.digest);
    const auto close = [&](std::byte* base, std::size_t rows) {
      if (has_flags()) fill_rows(batch, base, rows);
      const std::size_t all = options_.pad_last ? options_.rows : rows;
      batch_extent e;
      if constexpr (Columns::ragged > 0) e = columns_.close(base, all);
      e.padding_rows = all - rows;
      return e;
    };
    options_.batches->rows_done(batch, count, close);
  }

  void space_freed() noexcept override { open_slots(); }   // a slot was freed

  void count_into(event_counts& counts) noexcept override {
    for (auto& s : scratch_) s.count_into(counts);
  }
  void add_to(flow_figures& f, std::uint64_t now_ns) const override {
    stage_figures s = dispatcher_->figures("workers", now_ns);
    if constexpr (Maps::maps > 0) {
      for (const phase_times& p : phases_) p.add_to(s, "map", Columns::rendering);
      phase_times::divide(s);
    }
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
  static constexpr std::size_t rendering = ~std::size_t{0};   // instead of the number of a map

  struct current_ticket {
    std::uint64_t position = 0;
    std::size_t map_at_work = 0;
    std::size_t bytes = 0;   // held by the input
    std::uint64_t digest = 0;
    bool unreadable = false, end_of_run = false;   // why there is no item
    record origin{};
  };
  struct group {
    std::uint64_t batch, first;
    std::size_t count;
    phase_times* look;   // null: the times are not measured
  };
  struct early_item {
    sample<input> taken;   // without its item
    std::optional<item> made;
    std::exception_ptr error;
  };
  struct group_sums {
    std::size_t early = 0;   // taken by make_early()
    std::size_t bytes = 0;   // held by the inputs
    std::uint64_t digest = 0;
  };

  static error_location where(const current_ticket& context) {
    error_location at = context.origin.where();
    at.stage = context.map_at_work == rendering ? "batch" : map_name(context.map_at_work);
    at.position = context.position;
    return at;
  }

  std::size_t row_of(const current_ticket& context) const noexcept {
    return static_cast<std::size_t>(context.position % options_.rows);
  }

  /// Keeps the current exception with the batch: as its error, or as a damaged row.
  void fail(std::uint64_t batch, current_ticket& context) noexcept {
    std::exception_ptr error = located_by([&] { return where(context); });
    try {
      if (context.unreadable || (!context.end_of_run && options_.damaged.takes(error))) {
        context.digest = 0;
        return options_.batches->add_damaged(batch, {.row = row_of(context), .error = error});
      }
    } catch (...) {
      error = std::current_exception();   // out of memory while composing the message
    }
    options_.batches->fail(batch, context.position, std::move(error));
  }

  /// Remembers a damaged sample that was met before there were slots. Returns false: it gives no shapes.
  bool add_early_damage(const std::exception_ptr& error, const sample<input>& s) {
    options_.damaged.add_early(early_damaged_, error, s.epoch > early_.front().taken.epoch);
    return false;
  }

  bool has_flags() const noexcept { return options_.damaged.goes_on() || options_.pad_last; }

  /// Fills the rows of damaged samples and those without a sample, and sets the flags of all rows.
  void fill_rows(std::uint64_t batch, std::byte* base, std::size_t rows) noexcept {
    const auto flags = columns_.flags(base);
    const auto valid = flags.first(options_.rows), replaced = flags.subspan(options_.rows);
    std::fill(flags.begin(), flags.end(), std::uint8_t{0});
    std::fill_n(valid.begin(), rows, std::uint8_t{1});
    std::vector<damaged_row>& damaged = options_.batches->damaged(batch);
    for (const damaged_row& d : damaged) valid[d.row] = 0;
    for (damaged_row& d : damaged) {
      const std::size_t row = d.row;
      const auto good = [&](std::size_t other) { return valid[other] != 0 && replaced[other] == 0; };
      const std::size_t donor =
          options_.damaged.policy == damage::replace ? options_.damaged.donor_of(row, rows, good) : row;
      d.replaced = donor != row;
      if (d.replaced) {
        columns_.copy_row(base, donor, row);
        valid[row] = replaced[row] = 1;
      } else {
        columns_.clear_row(base, row);
      }
      if (options_.keys) set_key(batch, d, donor);
    }
    for (std::size_t row = rows; options_.pad_last && row < options_.rows; ++row) {
      columns_.clear_row(base, row);
      if (options_.keys) options_.batches->keys(batch).set(row, {});
    }
  }

  /// A copy has the key of its original, and a masked row that of its own sample.
  void set_key(std::uint64_t batch, const damaged_row& d, std::size_t donor) noexcept {
    batch_keys& keys = options_.batches->keys(batch);
    try {
      if (d.replaced) return keys.copy(donor, d.row);
      try {
        std::rethrow_exception(d.error);
      } catch (const millrace::error& e) {
        keys.set(d.row, e.where().key);
      }
    } catch (...) {
      options_.batches->fail(batch, batch * options_.rows + d.row, std::current_exception());   // out of memory
    }
  }

  /// Runs the maps for the whole group first. Then renders the samples that did not fail in one go.
  void render_group(std::size_t worker, const group& of, group_sums& sums) noexcept {
    scratch& memory = scratch_[worker];
    const auto [batch, first, count, look] = of;
    const std::uint64_t start = look ? steady_now_ns() : 0;
    std::array<std::optional<item>, together> items;
    std::array<current_ticket, together> contexts;
    std::size_t early = 0;
    if (first < early_.size()) [[unlikely]] {
      early = take_early(of, items, contexts);
      sums.early += early;
    }
    for (std::size_t i = early; i < count; ++i) {
      contexts[i].position = first + i;
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
    std::byte* const base = options_.batches->data(batch);
    for (std::size_t i = 0; i < count;) {
      // Consecutive samples that did not fail lie in consecutive rows.
      std::array<const item*, together> run{};
      std::size_t n = 0;
      while (i + n < count && items[i + n]) {
        run[n] = &*items[i + n];
        ++n;
      }
      dispatcher_->at(worker, first + i);
      if (n > 0) render_run(memory, batch, base, std::span(run).first(n), std::span(contexts).subspan(i, n));
      i += n + 1;
    }
    for (std::size_t i = 0; i < count; ++i) sums.digest += contexts[i].digest;
    if (look) look->add(mapped - start, steady_now_ns() - mapped, count);
  }

  void prepare(scratch& memory, std::uint64_t batch, current_ticket& context, std::optional<item>& out) {
    sample<input> s = input_.take(context.position, context.bytes);
    if (!enter(batch, context, s)) return;
    out.emplace(maps_(std::move(*s.item), {.epoch = s.pass, .sample = s.id}, memory, context.map_at_work));
    context.map_at_work = rendering;
    columns_.check_shapes(*out);
  }

  /// Enters what the batch keeps of a sample. Returns false for a void row.
  [[gnu::always_inline]] bool enter(std::uint64_t batch, current_ticket& context, sample<input>& s) {
    if (context.position % options_.rows == 0) options_.batches->set_epoch(batch, s.epoch);
    if (s.what == sample<input>::kind::void_row) {
      options_.batches->add_void_rows(batch, 1);
      return false;
    }
    if (s.error) [[unlikely]] {
      context.unreadable = s.what == sample<input>::kind::damaged;
      context.end_of_run = !context.unreadable;
      std::rethrow_exception(s.error);
    }
    if constexpr (mixer::mixes) mixer_.set_epoch(batch, s.epoch);   // a void row has no epoch
    context.digest = s.digest;
    s.keep_origin();
    context.origin = std::move(s.origin);
    if (options_.keys) options_.batches->keys(batch).set(row_of(context), context.origin.key());
    return true;
  }

  /// Takes over the first positions of a group, as far as make_early() took them. Returns their number.
  /// (Never inlined, because hardly any group has some.)
  [[gnu::noinline]] std::size_t take_early(const group& of, std::span<std::optional<item>, together> items,
                                           std::span<current_ticket, together> contexts) noexcept {
    std::size_t i = 0;
    for (; i < of.count && of.first + i < early_.size(); ++i) {
      auto& [s, made, error] = early_[of.first + i];
      contexts[i].position = of.first + i;
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
                  std::span<current_ticket> contexts) noexcept {
    const std::size_t row = row_of(contexts[0]);
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
  const options options_;
  Columns columns_;
  ticket_input<input> input_;
  std::vector<scratch> scratch_;
  std::vector<phase_times> phases_;   // by worker
  [[no_unique_address]] mixer mixer_;
  std::shared_ptr<dispatcher> dispatcher_;
  std::vector<early_item> early_;   // by position; constant once the workers run, but for its elements
  std::uint64_t early_damaged_ = 0;
};

}}}  // namespace millrace::detail
