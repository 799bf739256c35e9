// Adapts a range to an indexed run: the number of elements is known, and each element can be read individually.
//
//   auto data = std::make_shared<mr::detail::range_data<std::vector<clip>>>(range);
//   mr::detail::range_data<std::vector<clip>>::access reader(*data, samples);
//   clip c = reader.read({0, 17});                      // a copy of element 17
//
// Errors: setup_error for a range without elements; data_error if the range changes its size while a session runs.
// Threads: any number of threads may read at the same time. If elements are computed, only one thread at a time
// computes an element.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/order/exact_order.hpp>

#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The result of reading an element of a range.
template <class Range>
using element_of = decltype(*std::begin(std::declval<const Range&>()));

/// A range whose elements can be read in any order, because they are in memory or are integers, as in std::views::iota.
/// Other computed elements are excluded, because they may depend on the order in which they are read.
template <class Range>
concept indexable_range = requires(const Range& range) {
  requires std::random_access_iterator<decltype(std::begin(range))>;
  requires std::sized_sentinel_for<decltype(std::end(range)), decltype(std::begin(range))>;
  requires std::is_lvalue_reference_v<element_of<Range>> || std::is_integral_v<element_of<Range>>;
};

/// The elements of one range.
template <class Range>
class range_data {
  static constexpr bool is_computed = !std::is_lvalue_reference_v<element_of<Range>>;

 public:
  using item = std::remove_cvref_t<element_of<Range>>;

  explicit range_data(std::shared_ptr<const Range> range) : range_(std::move(range)), counts_{size()} {
    if (counts_[0] == 0)
      throw setup_error("the range of from() is empty",
                        "Fill the range before you create the session");
  }
  range_data(const range_data&) = delete;
  range_data& operator=(const range_data&) = delete;

  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  std::uint64_t id_of(const located_sample& s) const noexcept { return s.id(); }
  std::uint64_t choice() const noexcept { return 0; }
  const std::string& choice_text() const noexcept { return no_choice_; }
  /// Returns a size that is not the real size. It is chosen so that a run reads blocks of 256 elements.
  std::uint64_t size_bytes() const noexcept { return counts_[0] * (std::uint64_t{16} << 10); }
  std::uint64_t fingerprint() const noexcept { return combine_keys(1, counts_[0]); }
  error_location location_of(const located_sample& s) const { return {.stage = "source", .key = name_of(s)}; }
  std::string name_of(const located_sample& s) const { return std::to_string(s.index); }

  /// Reads elements, for one thread.
  class access {
   public:
    access(const range_data& data, std::span<const ordered_sample>) noexcept : data_(&data) {}
    item read(const located_sample& s) const {
      if (data_->size() != data_->counts_[0])
        throw data_error("the range of from() changed its size: got " + std::to_string(data_->size()) +
                             " elements, expected " + std::to_string(data_->counts_[0]),
                         "Do not change the range while a session runs");
      std::unique_lock<std::mutex> lock;
      if constexpr (is_computed) lock = std::unique_lock(data_->mutex_);
      const auto first = std::begin(*data_->range_);
      return item(*(first + static_cast<std::iter_difference_t<decltype(first)>>(s.index)));
    }
    /// Returns 0. Therefore the digest of a run depends on the positions of elements, but not on their content.
    std::uint32_t checksum() const noexcept { return 0; }

   private:
    const range_data* data_;
  };

 private:
  std::uint64_t size() const { return static_cast<std::uint64_t>(std::end(*range_) - std::begin(*range_)); }

  const std::shared_ptr<const Range> range_;
  const std::vector<std::uint64_t> counts_;
  const std::string no_choice_{};
  mutable std::mutex mutex_;   // locked while an element is computed
};

}}}  // namespace millrace::detail
