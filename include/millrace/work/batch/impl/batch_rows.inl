// Definitions for batch_rows.hpp.
#pragma once

#include <millrace/work/batch/batch_rows.hpp>

#include <millrace/base/error.hpp>
#include <millrace/work/segment/fused_maps.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE batch_rows::batch_rows(const options& o, const row_kind& kind)
    : worker_segment({.name = "workers",
                      .span_name = "work",
                      .workers = o.workers,
                      .claims = {.max_workers = o.max_workers, .together = kind.together, .group = o.rows}}),
      rows_(o),
      damaged_(o.damaged ? *o.damaged : damage_rule()),
      phases_(o.max_workers),
      rendering_name_(kind.rendering) {}

MILLRACE_RARE std::uint64_t batch_rows::position_of(const row_ticket& of) const noexcept {
  const batch_numbers& n = rows_.numbers;
  if (n.epoch_batches == 0) return of.position;
  return n.position(n.of(of.position / rows_.rows), static_cast<std::size_t>(of.position % rows_.rows));
}

MILLRACE_INLINE std::exception_ptr batch_rows::located(const row_ticket& of) const noexcept {
  return error_located_by([&] {
    error_location at = of.origin.where();
    at.stage = of.map_at_work == rendering ? "batch" : map_name(of.map_at_work);
    at.position = position_of(of);
    return at;
  });
}

MILLRACE_RARE void batch_rows::fail(std::uint64_t batch, row_ticket& of) noexcept {
  std::exception_ptr error = located(of);
  try {
    if (of.unreadable || (!of.end_of_run && damaged_.accepts(error))) {
      of.digest = 0;
      return rows_.batches->add_damaged(batch, {.row = row_of(batch, of), .error = error});
    }
  } catch (...) {
    error = std::current_exception();   // out of memory while composing the message
  }
  rows_.batches->fail(batch, of.position, std::move(error));
}

MILLRACE_INLINE bool batch_rows::add_early_damage(const std::exception_ptr& error, bool in_later_epoch) {
  if (!first_early_damage_) first_early_damage_ = error;
  damaged_.add_early(early_damaged_, error, in_later_epoch);
  return false;
}

MILLRACE_INLINE void batch_rows::rows_done(std::uint64_t batch, std::size_t count) noexcept {
  batch_ring& batches = *rows_.batches;
  if (!batches.rows_done(batch, count)) return;
  slot_extent extent;
  if (!batches.failed(batch)) {
    std::byte* const base = batches.data(batch);
    const std::size_t rows = batches.rows_of(batch), all = rows_.pad_last ? rows_.rows : rows;
    if (has_flags()) fill_rows(batch, base, rows);
    extent = close_columns(batch, base, all);
    extent.padding_rows = all - rows;
  }
  batches.set_ready(batch, extent);
}

MILLRACE_INLINE void batch_rows::fill_rows(std::uint64_t batch, std::byte* base, std::size_t rows) noexcept {
  const auto flags = flags_at(base);
  const auto valid = flags.first(rows_.rows), replaced = flags.subspan(rows_.rows);
  std::fill(flags.begin(), flags.end(), std::uint8_t{0});
  std::fill_n(valid.begin(), rows, std::uint8_t{1});
  std::vector<damaged_row>& damaged = rows_.batches->damaged(batch);
  for (const damaged_row& d : damaged) valid[d.row] = 0;
  for (damaged_row& d : damaged) {
    const std::size_t row = d.row;
    const auto good = [&](std::size_t other) { return valid[other] != 0 && replaced[other] == 0; };
    const std::size_t donor = damaged_.policy == damage::replace ? damaged_.donor_of(row, rows, good) : row;
    d.replaced = donor != row;
    if (d.replaced) {
      copy_row(base, donor, row);
      valid[row] = replaced[row] = 1;
    } else {
      clear_row(base, row);
    }
    if (rows_.keys) set_key(batch, d, donor);
  }
  for (std::size_t row = rows; rows_.pad_last && row < rows_.rows; ++row) {
    clear_row(base, row);
    if (rows_.keys) rows_.batches->keys(batch).set(row, {});
  }
}

/// Sets the key of a damaged row. A copy has the key of its original, and a masked row the key of its sample.
MILLRACE_INLINE void batch_rows::set_key(std::uint64_t batch, const damaged_row& d, std::size_t donor) noexcept {
  batch_keys& keys = rows_.batches->keys(batch);
  try {
    if (d.replaced) return keys.copy(donor, d.row);
    try {
      std::rethrow_exception(d.error);
    } catch (const millrace::error& e) {
      keys.set(d.row, e.where().key);
    }
  } catch (...) {
    rows_.batches->fail(batch, batch * rows_.rows + d.row, std::current_exception());   // out of memory
  }
}

MILLRACE_RARE void batch_rows::add_to(flow_statistics& f, std::uint64_t now_ns) const {
  stage_statistics s = dispatcher_->statistics(name_, now_ns);
  if (rendering_name_) {
    for (const phase_times& p : phases_) p.add_to(s, "map", rendering_name_);
    phase_times::divide(s);
  }
  f.stages.push_back(std::move(s));
}

MILLRACE_RARE batch_rows::~batch_rows() = default;

MILLRACE_INLINE early_row& batch_rows::add_early(early_row* row) {
  early_.push_back(owner<early_row>(row));
  return *row;
}

}}}   // namespace millrace::detail
