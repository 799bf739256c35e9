// pack: builds rows of a fixed number of tokens from documents of any length. Each token is in exactly one row.
//
//   auto documents = mr::shards("books-{00..31}.tar") | mr::map(tokenize);    // std::vector<std::uint32_t>, any length
//   auto rows = documents | mr::pack({.length = 2049, .separator = 50256})    // mr::packed
//             | mr::batch<&mr::packed::ids>({.size = 32});                    // [32, 2049] u32
//   auto fitted = documents | mr::pack_best_fit({.length = 2049, .segments = true})   // cuts only longer documents
//               | mr::batch<&mr::packed::ids, &mr::packed::segments>({.size = 32});
//   const auto cost = [](const std::vector<std::uint32_t>& d) { return d.size(); };
//   auto lists = documents | mr::pack_best_fit(cost, {.max_cost = 8'192});    // std::vector of documents, not cut
//
// - pack() puts documents one after the other into rows. If a separator is set, it follows each document. If a document
//   does not fit into the rest of a row, pack() cuts it and continues it in the next row.
// - pack_best_fit() cuts only documents that are longer than a row. It fills several open rows at the same time. It
//   puts each piece (a document, or the rest of a cut document) into the fullest open row that has enough space for the
//   piece. The unused end of a row is padding. If the length of a document is a multiple of the row length, no
//   separator follows this document.
//
// On one rank, both stages fill the last rows of a pass with padding. A document without tokens adds nothing, not even
// a separator.
// The documents of a row are numbered from 1. For each token, the column `segments` contains the number of its
// document. The column `positions` contains the offset of each token in the part of its document that is in this row.
// Both columns are 0 for padding. A model needs `segments` to limit attention to one document, and `positions` for
// position embeddings. If you pass a function that returns the cost of an item, both stages produce lists of items,
// std::vector<Item>. The sum of the costs of a list is at most max_cost, and items are never cut. pack() ends a list
// when the next item does not fit. pack_best_fit() puts each item into the fullest open list that has enough space for
// the item. The order of the rows does not depend on the number of threads.
// Resume: if pack() builds rows of tokens, and only map() and batch() follow, a resumed run starts at the document that
// contains the end of the last delivered row. In all other cases, a resumed run reads data again: on one rank from the
// beginning of the current pass, on several ranks from the beginning of the run. On several ranks, each rank packs the
// documents of the shards that it reads, and continues a row from one pass into the next pass, without padding. The
// resume point of a rank is valid only for this rank and the same number of ranks.
// Errors: setup_error for a length or max_cost of 0. setup_error for a resume point of a run with another length,
// max_cost or open_rows. data_error for an item with a negative cost or a cost above max_cost.
// Threads: runs on its own thread.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/item/position.hpp>
#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of pack().
struct pack_options {
  std::size_t length = 1024;                  ///< tokens in a row
  std::optional<std::uint32_t> separator{};   ///< token after each document; none by default
  std::optional<std::uint32_t> padding{};     ///< token that fills a row; by default the separator, or 0
  bool segments = false, positions = false;   ///< whether packed rows have these columns
};

/// Options of pack_best_fit().
struct pack_best_fit_options {
  std::size_t length = 1024;                  ///< tokens in a row
  std::optional<std::uint32_t> separator{};   ///< token after each document; none by default
  std::optional<std::uint32_t> padding{};     ///< token that fills a row; by default the separator, or 0
  bool segments = false, positions = false;   ///< whether packed rows have these columns
  std::size_t open_rows = 64;                 ///< rows that are filled at the same time; more rows leave less padding
};

/// Options of pack() and pack_best_fit() with a function from an item to its cost.
struct cost_options {
  std::size_t max_cost = 0;     ///< maximum sum of the costs of a row's items; required
  std::size_t open_rows = 64;   ///< rows that pack_best_fit() fills at the same time
};

namespace detail {

/// Returns the index of the fullest row with at least `size` free space, or rows.size() if no row has this space.
template <class Row>
std::size_t best_packed_row(const std::vector<Row>& rows, std::size_t size) noexcept {
  std::size_t best = rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].space() >= size && (best == rows.size() || rows[i].space() < rows[best].space())) best = i;
  return best;
}

/// A row that is being filled from the front.
class partial_token_row {
 public:
  explicit partial_token_row(const pack_options& o) : options_(&o) {
    const std::size_t length = o.length;
    row_.ids.reserve(length);
    if (o.segments) row_.segments.reserve(length);
    if (o.positions) row_.positions.reserve(length);
  }

  std::size_t used() const noexcept { return row_.ids.size(); }
  std::size_t space() const noexcept { return options_->length - used(); }

  /// Adds a piece of a document, then the separator if requested. Both must fit into the row.
  void add(std::span<const std::uint32_t> tokens, bool with_separator) {
    const std::size_t count = tokens.size() + (with_separator ? 1 : 0);
    row_.ids.insert(row_.ids.end(), tokens.begin(), tokens.end());
    if (with_separator) row_.ids.push_back(*options_->separator);
    ++segment_;
    if (options_->segments) row_.segments.resize(row_.ids.size(), segment_);
    if (options_->positions)
      for (std::size_t i = 0; i < count; ++i) row_.positions.push_back(static_cast<std::uint32_t>(i));
  }
  /// Fills the row with padding and returns it.
  packed take() {
    const pack_options& o = *options_;
    row_.ids.resize(o.length, o.padding.value_or(o.separator.value_or(0)));
    if (o.segments) row_.segments.resize(o.length, 0);
    if (o.positions) row_.positions.resize(o.length, 0);
    return std::move(row_);
  }

 private:
  const pack_options* options_;
  packed row_;
  std::uint32_t segment_ = 0;
};

const pack_options& checked(const pack_options& o);

/// Puts documents one after the other. A run resumes at the beginning of a document, and restores only the number of
/// tokens in the row at this point. The values of these tokens are not needed, because the interrupted run has already
/// delivered this row.
class packing {
 public:
  using output = packed;

  explicit packing(const pack_options& o) : options_(std::make_unique<const pack_options>(checked(o))) {}
  packing(const packing& other) : options_(std::make_unique<const pack_options>(*other.options_)) {}
  packing(packing&&) noexcept = default;

  std::size_t max_outputs(std::span<const std::uint32_t> document) const {
    return (fill_level() + document.size() + 1) / options_->length;
  }
  void push(std::span<const std::uint32_t> document, auto& emit) {
    if (document.empty()) return;
    bool separator_pending = options_->separator.has_value();
    while (!document.empty() || separator_pending) {
      if (!row_) row_.emplace(*options_);
      const std::size_t count = std::min(document.size(), row_->space());
      const bool completes = count == document.size() && row_->space() > count;
      row_->add(document.first(count), completes && separator_pending);
      document = document.subspan(count);
      if (completes) separator_pending = false;
      if (row_->space() == 0) emit(take());
    }
  }
  void finish(auto& emit) {
    if (row_) emit(take());
  }

  position::packing_limits limits() const noexcept { return {.row = options_->length, .open_rows = 1}; }
  std::uint64_t fill_level() const noexcept { return row_ ? row_->used() : 0; }
  /// Restores the number of tokens in the first row. Their values are unknown, but the interrupted run has already
  /// delivered this row.
  void restore_fill_level(std::uint64_t tokens) {
    if (tokens >= options_->length)
      throw data_error("the resume point has " + std::to_string(tokens) +
                           " tokens in an incomplete row: got a pack_options::length of " +
                           std::to_string(options_->length) + ", expected a larger one",
                       "Resume with the pack_options::length of the run that wrote the resume point");
    row_.reset();
    if (tokens > 0) row_.emplace(*options_).add(std::vector<std::uint32_t>(static_cast<std::size_t>(tokens)), false);
  }

 private:
  packed take() {
    packed row = row_->take();
    row_.reset();
    return row;
  }

  std::unique_ptr<const pack_options> options_;   // on the heap, because rows point to it, and this object moves
  std::optional<partial_token_row> row_;
};

/// Puts each piece into the fullest open row that has enough space for the piece.
class best_fit_packing {
 public:
  using output = packed;

  explicit best_fit_packing(const pack_best_fit_options& o);
  best_fit_packing(const best_fit_packing& other);
  best_fit_packing(best_fit_packing&&) noexcept = default;

  std::size_t max_outputs(std::span<const std::uint32_t> document) const;
  void push(std::span<const std::uint32_t> document, auto& emit) {
    if (document.empty()) return;
    const std::size_t length = options_->length;
    for (; document.size() >= length; document = document.subspan(length)) {
      partial_token_row full_row(*options_);
      full_row.add(document.first(length), false);
      emit(full_row.take());
    }
    const bool separator = options_->separator.has_value();
    if (document.empty()) return;
    const std::size_t row = row_for(document.size() + (separator ? 1 : 0), emit);
    rows_[row].add(document, separator);
    if (rows_[row].space() == 0) close(row, emit);
  }
  void finish(auto& emit) {
    while (!rows_.empty()) close(0, emit);
  }
  position::packing_limits limits() const noexcept { return {.row = options_->length, .open_rows = open_rows_}; }

 private:
  std::size_t row_for(std::size_t tokens, auto& emit) {
    const std::size_t best = best_packed_row(rows_, tokens);
    if (best < rows_.size()) return best;
    if (rows_.size() == open_rows_) close(best_packed_row(rows_, 0), emit);   // the fullest row
    rows_.emplace_back(*options_);
    return rows_.size() - 1;
  }
  void close(std::size_t row, auto& emit) {
    emit(rows_[row].take());
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  }

  std::size_t open_rows_;
  std::unique_ptr<const pack_options> options_;
  std::vector<partial_token_row> rows_;   // in the order in which they were opened
};

void check_cost_options(const cost_options& o);
[[noreturn]] void throw_cost(const std::string& cost, std::size_t max_cost);

/// Puts each item into the fullest open row that has enough space for the item.
template <class Cost, class Item>
class item_packing {
 public:
  using output = std::vector<Item>;

  item_packing(Cost cost, const cost_options& o)
      : cost_(std::move(cost)), options_(o), open_rows_(std::max<std::size_t>(1, o.open_rows)) {
    check_cost_options(o);
  }

  std::size_t max_outputs(const Item&) const noexcept { return 2; }
  template <std::same_as<Item> Same>
  void push(Same item, auto& emit) {
    const auto returned = cost_(std::as_const(item));
    if (std::cmp_less(+returned, 0) || std::cmp_greater(+returned, options_.max_cost))
      throw_cost(std::to_string(+returned), options_.max_cost);
    const auto cost = static_cast<std::size_t>(returned);
    std::size_t row = best_packed_row(rows_, cost);
    if (row == rows_.size()) {
      if (row == open_rows_) close(best_packed_row(rows_, 0), emit);
      row = rows_.size();
      rows_.push_back({options_.max_cost, {}});
    }
    rows_[row].left -= cost;
    rows_[row].items.push_back(std::move(item));
    if (rows_[row].left == 0) close(row, emit);
  }
  void finish(auto& emit) {
    while (!rows_.empty()) close(0, emit);
  }
  position::packing_limits limits() const noexcept { return {.row = options_.max_cost, .open_rows = open_rows_}; }

 private:
  struct open_row {
    std::size_t left;
    std::vector<Item> items;
    std::size_t space() const noexcept { return left; }
  };

  void close(std::size_t row, auto& emit) {
    emit(std::move(rows_[row].items));
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  }

  Cost cost_;
  cost_options options_;
  std::size_t open_rows_;
  std::vector<open_row> rows_{};   // in the order in which they were opened
};

/// The item type of a function from an item to its cost; any_type if the function is generic.
template <class Cost>
using costed_item = std::remove_cvref_t<typename diagnose::first_parameter<Cost>::type>;
template <class Cost>
concept cost_function = !std::same_as<costed_item<Cost>, diagnose::any_type> &&
                        requires(Cost& cost, const costed_item<Cost>& item) {
                          { cost(item) } -> std::integral;
                        };

/// Rejects a cost function whose parameter type is generic, or whose result is not an integer.
struct wrong_cost {
  // clang-format off
  template <class Cost>
    requires(!cost_function<Cost>)
  __attribute__((unavailable("millrace: the cost in pack() is not a function from an item to an integer. Write the "
                             "type of its parameter, and return an integer.")))
  wrong_cost(const Cost&) {}
  // clang-format on
};

/// The result of pack() and pack_best_fit(). The stage accepts `Input`.
template <class Packing, class Input = std::span<const std::uint32_t>>
struct pack_stage : expand_stage<Packing> {
  using joins_samples_mark = void;

  template <class In>
  static constexpr diagnose::mistake mistake_on = expand_stage<Packing>::template mistake_on<In> ==
                                                          diagnose::mistake::none
                                                      ? diagnose::mistake::none
                                                      : diagnose::mistake::accepts_another_type;
  template <class>
  using expected_input = Input;
};
template <class Cost>
using item_pack_stage = pack_stage<item_packing<Cost, costed_item<Cost>>, costed_item<Cost>>;

}   // namespace detail

/// Returns the stage that puts documents one after the other. Throws setup_error if options.length is 0.
detail::pack_stage<detail::packing> pack(const pack_options& options);
/// Returns the stage that cuts only documents longer than a row. Throws setup_error if options.length is 0.
detail::pack_stage<detail::best_fit_packing> pack_best_fit(const pack_best_fit_options& options);

/// Returns the stage that puts items into a row until the next item does not fit. `cost` is a function from an item to
/// an integer; its parameter has the type of the items.
/// Throws setup_error if options.max_cost is 0.
template <detail::cost_function Cost>
auto pack(Cost cost, cost_options options) {
  options.open_rows = 1;
  return detail::item_pack_stage<Cost>{{{}, {std::move(cost), options}}};
}
/// Returns the stage that puts each item into the fullest open row that has enough space for the item. `cost` is a
/// function from an item to an integer; its parameter has the type of the items.
/// Throws setup_error if options.max_cost is 0.
template <detail::cost_function Cost>
auto pack_best_fit(Cost cost, const cost_options& options) {
  return detail::item_pack_stage<Cost>{{{}, {std::move(cost), options}}};
}
detail::broken_stage pack(const detail::wrong_cost&, const cost_options&);
detail::broken_stage pack_best_fit(const detail::wrong_cost&, const cost_options&);

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/stages/impl/pack.inl>
#endif
