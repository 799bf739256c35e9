// pack: documents of tokens become rows of exactly so many tokens; none is lost, none comes twice.
//
//   flow | mr::map(tokenize)                                          // std::vector<std::uint32_t>, any length
//        | mr::pack({.length = 2049, .separator = 50256})             // mr::packed
//        | mr::batch<&mr::packed::ids>({.size = 32})                  // [32, 2049] u32
//        | mr::pack_best_fit({.length = 2049, .segments = true})      // instead: no document is cut that fits a row
//
// pack() lays document behind document, each with the separator behind it if there is one, and cuts wherever a row is
// full. pack_best_fit() cuts only what is longer than a row: the rest of such a document, and every other one, goes as
// a whole into that of the open rows which it fits best; what stays free is padding. The last rows of a pass are filled
// up with padding. Documents without a token add nothing, not even a separator, and those that pack_best_fit() ends
// with their row have none.
// Segments say which document of its row a token belongs to (1, 2, ...; 0: padding), positions how far behind the
// beginning of its piece in that row it stands (padding: 0), so that attention can be kept inside a document.
// Rows come in order, whatever the number of threads. A resumed run reads again from the document in which its last row
// ended if only map() and batch() follow pack(), else from the beginning of the pass.
// Errors: setup_error for a length of 0. Threads: one of its own.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/packed.hpp>
#include <millrace/stages/expand.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

struct pack_options {
  std::size_t length = 1024;                   ///< tokens in a row
  std::optional<std::uint32_t> separator{};    ///< behind each document
  std::optional<std::uint32_t> padding{};      ///< the separator unless chosen, or 0
  bool segments = false, positions = false;    ///< whether rows have them
};

struct pack_best_fit_options {
  std::size_t length = 1024;                   ///< tokens in a row
  std::optional<std::uint32_t> separator{};    ///< behind each document
  std::optional<std::uint32_t> padding{};      ///< the separator unless chosen, or 0
  bool segments = false, positions = false;    ///< whether rows have them
  std::size_t open_rows = 64;                  ///< filled at the same time; more of them leave less padding
};

namespace detail {

/// One row on its way, filled from the front.
class partial_row {
 public:
  explicit partial_row(const pack_options& o) : options_(&o) {
    const std::size_t length = o.length;
    row_.ids.reserve(length);
    if (o.segments) row_.segments.reserve(length);
    if (o.positions) row_.positions.reserve(length);
  }

  std::size_t used() const noexcept { return row_.ids.size(); }
  std::size_t room() const noexcept { return options_->length - used(); }

  /// One piece of a document, or its separator right behind it. Both have to fit.
  void add(std::span<const std::uint32_t> tokens, bool with_separator) {
    const std::size_t count = tokens.size() + (with_separator ? 1 : 0);
    row_.ids.insert(row_.ids.end(), tokens.begin(), tokens.end());
    if (with_separator) row_.ids.push_back(*options_->separator);
    ++segment_;
    if (options_->segments) row_.segments.resize(row_.ids.size(), segment_);
    if (options_->positions)
      for (std::size_t i = 0; i < count; ++i) row_.positions.push_back(static_cast<std::uint32_t>(i));
  }
  /// Filled up and given away.
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

inline const pack_options& checked(const pack_options& o) {
  if (o.length == 0) throw setup_error("pack() was asked for rows of 0 tokens", "Set pack_options::length");
  return o;
}

/// Document behind document. What it holds between two of them can be had again from how many tokens that is: they
/// belong to a row that ends in the document to come.
class packing {
 public:
  using output = packed;

  explicit packing(const pack_options& o) : options_(std::make_unique<const pack_options>(checked(o))) {}
  packing(const packing& other) : options_(std::make_unique<const pack_options>(*other.options_)) {}
  packing(packing&&) noexcept = default;

  std::size_t max_outputs(std::span<const std::uint32_t> document) const {
    return (held() + document.size() + 1) / options_->length;
  }
  void push(std::span<const std::uint32_t> document, auto& emit) {
    if (document.empty()) return;
    bool separator_to_come = options_->separator.has_value();
    while (!document.empty() || separator_to_come) {
      if (!row_) row_.emplace(*options_);
      const std::size_t count = std::min(document.size(), row_->room());
      const bool whole = count == document.size() && row_->room() > count;
      row_->add(document.first(count), whole && separator_to_come);
      document = document.subspan(count);
      if (whole) separator_to_come = false;
      if (row_->room() == 0) emit(take());
    }
  }
  void finish(auto& emit) {
    if (row_) emit(take());
  }

  std::uint64_t held() const noexcept { return row_ ? row_->used() : 0; }
  /// That many tokens are in the first row, and nobody will look at it.
  void set_held(std::uint64_t tokens) {
    if (tokens >= options_->length)
      throw data_error("the resume point has " + std::to_string(tokens) + " tokens in a row of " +
                           std::to_string(options_->length),
                       "Resume with the pack_options::length of the run that wrote it");
    row_.reset();
    if (tokens > 0) row_.emplace(*options_).add(std::vector<std::uint32_t>(static_cast<std::size_t>(tokens)), false);
  }

 private:
  packed take() {
    packed row = row_->take();
    row_.reset();
    return row;
  }

  std::unique_ptr<const pack_options> options_;   // rows point to it, and this object moves
  std::optional<partial_row> row_;
};

/// Each piece into the open row that it leaves the least room in.
class best_fit_packing {
 public:
  using output = packed;

  explicit best_fit_packing(const pack_best_fit_options& o)
      : open_rows_(std::max<std::size_t>(1, o.open_rows)),
        options_(std::make_unique<const pack_options>(checked({.length = o.length, .separator = o.separator,
                                                               .padding = o.padding, .segments = o.segments,
                                                               .positions = o.positions}))) {}
  best_fit_packing(const best_fit_packing& other)
      : open_rows_(other.open_rows_), options_(std::make_unique<const pack_options>(*other.options_)) {}
  best_fit_packing(best_fit_packing&&) noexcept = default;

  std::size_t max_outputs(std::span<const std::uint32_t> document) const {
    return (document.size() + 1) / options_->length + 2;
  }
  void push(std::span<const std::uint32_t> document, auto& emit) {
    if (document.empty()) return;
    const std::size_t length = options_->length;
    for (; document.size() >= length; document = document.subspan(length)) {
      partial_row whole(*options_);
      whole.add(document.first(length), false);
      emit(whole.take());
    }
    const bool separator = options_->separator.has_value();
    if (document.empty()) return;
    const std::size_t row = row_for(document.size() + (separator ? 1 : 0), emit);
    rows_[row].add(document, separator);
    if (rows_[row].room() == 0) close(row, emit);
  }
  void finish(auto& emit) {
    while (!rows_.empty()) close(0, emit);
  }

 private:
  std::size_t row_for(std::size_t tokens, auto& emit) {
    std::size_t best = rows_.size();
    for (std::size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].room() >= tokens && (best == rows_.size() || rows_[i].room() < rows_[best].room())) best = i;
    if (best < rows_.size()) return best;
    if (rows_.size() == open_rows_) {
      std::size_t fullest = 0;
      for (std::size_t i = 1; i < rows_.size(); ++i)
        if (rows_[i].room() < rows_[fullest].room()) fullest = i;
      close(fullest, emit);
    }
    rows_.emplace_back(*options_);
    return rows_.size() - 1;
  }
  void close(std::size_t row, auto& emit) {
    emit(rows_[row].take());
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  }

  std::size_t open_rows_;
  std::unique_ptr<const pack_options> options_;
  std::vector<partial_row> rows_;   // in the order in which they were opened
};

}  // namespace detail

template <class Packing>
struct pack_stage : expand_stage<Packing> {
  using joins_samples_mark = void;

  template <class In>
  static constexpr diagnose::mistake mistake_on = expand_stage<Packing>::template mistake_on<In> ==
                                                          diagnose::mistake::none
                                                      ? diagnose::mistake::none
                                                      : diagnose::mistake::takes_another_type;
  template <class>
  using wanted_instead_of = std::span<const std::uint32_t>;
};

inline pack_stage<detail::packing> pack(const pack_options& options) { return {{{}, detail::packing(options)}}; }
inline pack_stage<detail::best_fit_packing> pack_best_fit(const pack_best_fit_options& options) {
  return {{{}, detail::best_fit_packing(options)}};
}

}}  // namespace millrace
