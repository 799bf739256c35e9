// Mixes the rows of batches in pairs. A worker that has rendered a row mixes the pair if the other row is already
// rendered.
//
//   mr::detail::row_mixer<columns> mixer({.rule = rule, .seed = 7, .stage = 2, .numbers = numbers});
//   mixer.start(layout, ring);                 // after the shapes are fixed and the ring has its slots
//   mixer.set_epoch(batch, sample.epoch);      // a worker, before it renders a row
//   mixer.rendered(batch, base, 4, 8);         // a worker, after it has rendered rows 4 to 11
//
// If the sample of a row is damaged or missing, the other row of its pair stays unchanged.
// Errors: start() throws setup_error if cutmix is used and rows have no height and width.
// Threads: any number of workers. Cost: one atomic exchange for each row; no allocation after start().
#pragma once

#include <millrace/device/mix_rows.hpp>
#include <millrace/item/column/mixed_columns.hpp>
#include <millrace/order/batch_numbers.hpp>
#include <millrace/stages/mix_rows.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/batch/no_row_mixer.hpp>

#include <atomic>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Mixes the rows of batches that have `Columns`.
template <class Columns>
class row_mixer {
 public:
  static constexpr bool mixes = true;

  struct options {
    std::optional<pair_rule> rule{};
    mix_rows_options settings{};
    std::uint64_t seed = 0, stage = 0;   // seed and stage number of the random draws
    batch_numbers numbers{};
  };

  explicit row_mixer(options o) : options_(std::move(o)) {}

  /// Allocates memory on the first call; later calls do nothing. Throws setup_error if the shape of the rows does not
  /// allow the cuts of cutmix.
  void start(const Columns& columns, batch_ring& batches) {
    if (batches_) return;
    batches_ = &batches;
    columns_ = &columns;
    grid_ = checked_grid_of(columns.pixels_shape());
    slots_ = batches.count();
    arrived_ = std::make_unique<std::atomic<std::uint32_t>[]>(slots_ * options_.numbers.rows);
    epochs_ = std::make_unique<std::atomic<std::uint64_t>[]>(slots_);
  }

  /// Records the epoch of the samples of a batch. All workers pass the same value for a batch.
  void set_epoch(std::uint64_t batch, std::uint64_t epoch) noexcept {
    epochs_[batch % slots_].store(epoch, std::memory_order_relaxed);
  }

  /// Records that rows were rendered. Mixes each row whose partner has also been rendered.
  void rendered(std::uint64_t batch, std::byte* base, std::size_t row, std::size_t count) noexcept {
    for (const std::size_t end = row + count; row < end; ++row) {
      columns_->start_row(base, row);
      const std::size_t stride = options_.numbers.own_stride();
      const std::size_t first = row / stride % 2 == 0 ? row : row - stride, second = first + stride;
      if (second >= options_.numbers.rows) continue;
      // Consecutive batches in the same slot have different marks. Therefore the marks need no reset when a slot is
      // reused.
      const auto mark = static_cast<std::uint32_t>(batch / slots_ + 1);
      auto& arrived = arrived_[batch % slots_ * options_.numbers.rows + first];
      if (arrived.exchange(mark, std::memory_order_acq_rel) == mark) mix(batch, base, {first, second});
    }
  }

 private:
  void mix(std::uint64_t batch, std::byte* base, const typename Columns::pair& rows) noexcept {
    const batch_numbers& numbers = options_.numbers;
    const batch_number in = numbers.epoch_batches > 0
                                ? numbers.of(batch)
                                : numbers.of(batch, epochs_[batch % slots_].load(std::memory_order_relaxed),
                                             batches_->epoch_start_of(batch));
    if (in.epoch >= options_.settings.off_epoch.value_or(~std::uint64_t{0})) return;
    rng random({.seed = options_.seed,
                .epoch = in.epoch,
                .sample = numbers.position(in, rows.first),
                .stage = options_.stage});
    const pair_mix how = options_.rule->draw(random, {.width = grid_.width, .height = grid_.height});
    if (!how.mixes) return;
    columns_->pair_rows(base, rows, how.row, how.lambda);
    if (options_.settings.deferred) return;
    mix_pixels(columns_->pixels(base, rows.first).data(), columns_->pixels(base, rows.second).data(), grid_, how.row);
  }

  template <std::size_t Rank>
  row_grid checked_grid_of(const std::array<std::size_t, Rank>& shape) const {
    const row_grid g = grid_of(shape, options_.settings.layout.value_or(usual_layout<typename Columns::pixel>));
    const auto is_side = [](std::size_t side) { return side >= 1 && side <= max_side; };
    if (options_.rule->cuts() && (Rank == 1 || !is_side(g.height) || !is_side(g.width)))
      throw setup_error("cutmix cannot cut boxes out of these rows: got rows of shape " + to_string(shape) +
                            ", expected a height and a width of 1 to " + std::to_string(max_side),
                        "Use rows of two or three dimensions, and set .layout to the order of their dimensions. "
                        "Otherwise, use mixup without cutmix");
    return g;
  }

  static constexpr std::size_t max_side = 65'535;

  const options options_;
  const Columns* columns_ = nullptr;
  batch_ring* batches_ = nullptr;
  row_grid grid_{};
  std::size_t slots_ = 0;
  std::unique_ptr<std::atomic<std::uint32_t>[]> arrived_;   // for each slot and pair: the mark of the batch
  std::unique_ptr<std::atomic<std::uint64_t>[]> epochs_;    // for each slot, the epoch of its batch
};

template <auto Pixels, auto Label, auto... Members>
struct row_mixer_of<mixed_columns<Pixels, Label, Members...>> {
  using type = row_mixer<mixed_columns<Pixels, Label, Members...>>;
};

}}}   // namespace millrace::detail
