// The rows of a batch as the last segment sees them, whatever their types: where errors go, and how rows that have no
// sample are filled.
//
//   class my_segment : mr::detail::batch_rows { ... };   // says how a row of its columns is copied or cleared
//   } catch (...) { fail(batch, ticket); }               // an error of the batch, or a damaged row
//   if (has_flags()) fill_rows(batch, base, rows);       // when the batch is closed
//
// Errors: kept with the batch. Threads: fail() is called by any worker, fill_rows() by the one that closes the batch.
#pragma once

#include <millrace/item/record.hpp>
#include <millrace/measure/phase_times.hpp>
#include <millrace/sync/batch_ring.hpp>
#include <millrace/work/damage_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A sample on its way to its row.
struct row_ticket {
  std::uint64_t position = 0;
  std::size_t map_at_work = 0;
  std::size_t bytes = 0;   ///< held by the input
  std::uint64_t digest = 0;
  bool unreadable = false, end_of_run = false;   ///< why there is no item
  record origin{};
};

/// Errors and damaged rows of the batches of a last segment.
class batch_rows {
 public:
  struct options {
    std::size_t rows = 1;   ///< rows of a batch
    bool pad_last = false;   ///< a short batch is filled up with masked rows
    bool keys = false;   ///< each batch has the keys of its rows
    batch_ring* batches = nullptr;
    const damage_rule* damaged = nullptr;   ///< null: damage is an error
  };

  batch_rows(const batch_rows&) = delete;
  batch_rows& operator=(const batch_rows&) = delete;

 protected:
  static constexpr std::size_t rendering = ~std::size_t{0};   // instead of the number of a map

  explicit batch_rows(const options& o);
  ~batch_rows() = default;

  std::size_t row_of(std::uint64_t batch, const row_ticket& of) const noexcept {
    return static_cast<std::size_t>(of.position - batch * rows_.rows);   // not a remainder: divisions are slow
  }
  /// Whether a slot says which of its rows are valid and which are copies.
  bool has_flags() const noexcept { return damaged_.goes_on() || rows_.pad_last; }

  /// Returns the current exception with the location of the sample.
  std::exception_ptr located(const row_ticket& of) const noexcept;
  /// Keeps the current exception with the batch: as its error, or as a damaged row.
  void fail(std::uint64_t batch, row_ticket& of) noexcept;
  /// Fills the rows of damaged samples and those without a sample, and sets the flags of all rows.
  void fill_rows(std::uint64_t batch, std::byte* base, std::size_t rows) noexcept;
  /// Adds the times of all workers to the figures of the stage.
  static void add_phases(stage_figures& s, const std::vector<phase_times>& of_workers, const char* rendering_name);

  const options rows_;
  const damage_rule damaged_;

 private:
  virtual std::span<std::uint8_t> flags_at(std::byte* base) const noexcept = 0;
  virtual void copy_row(std::byte* base, std::size_t from, std::size_t to) const noexcept = 0;
  virtual void clear_row(std::byte* base, std::size_t row) const noexcept = 0;

  void set_key(std::uint64_t batch, const damaged_row& d, std::size_t donor) noexcept;
};

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/batch_rows.ipp>
#endif
