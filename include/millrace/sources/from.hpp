// from: creates a flow from your own source: a range, a generator, or a source type.
//
//   auto a = mr::from(clips);                           // any range; an lvalue must outlive the session
//   auto b = mr::from([&] { return next_clip(); });     // a generator: returns std::optional<clip>
//   auto c = mr::from(my_source("clips/"), {.seed = 7});   // item, shards(), open(shard, epoch): flow/stage.hpp
//
// Elements of a range are copied. Items of a generator are moved. One thread at a time calls a generator. If the
// generator returns std::nullopt, the pass ends, and the next call begins the next pass. If a range has random access,
// and its elements are integers or are stored in memory, the order is exact, as for shards() with an index. In each
// pass, all ranks together deliver each element once. The world size may be any divisor of the global batch. A resumed
// run reads no element again. The range must not change while a session runs. Ranges without random access, or whose
// elements are not in memory, are streamed: a run iterates over them once per pass. A range is also streamed if the
// flow has expand, filter, pack, take, bucket, or a shuffle that does not follow from() directly.
// Errors: a millrace::error of the range, generator or source is rethrown unchanged. Any other exception becomes a
// stage_error. A session throws setup_error for a random-access range without elements.
// Threads: I/O threads read the source.
// Lifetime: an lvalue range must outlive the flow and its session. The flow owns everything else.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/version.hpp>
#include <millrace/flow/flow.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/item/sample.hpp>
#include <millrace/order/exact_order.hpp>
#include <millrace/read/run/indexed_run.hpp>

#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Adapts a range to an indexed run.
// Errors: setup_error for a range without elements; data_error if the range changes its size while a session runs.
// Threads: any number of threads may read at the same time. If elements are computed, only one thread at a time
// computes an element.

/// The type of the expression that reads an element of a range.
template <class Range>
using element_of = decltype(*std::begin(std::declval<const Range&>()));

/// A range whose elements can be read in any order: they are in memory, or are integers as in std::views::iota.
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
      throw setup_error("the range of from() is empty", "Fill the range before you create the session");
  }
  range_data(const range_data&) = delete;
  range_data& operator=(const range_data&) = delete;

  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  std::uint64_t id_of(const located_sample& s) const noexcept { return s.id(); }
  std::uint64_t choice() const noexcept { return 0; }
  const std::string& choice_text() const noexcept { return no_choice_; }
  /// Returns a nominal size of 16 KiB for each element. A block of samples has a target size of 4 MiB. Therefore a run
  /// reads blocks of 256 elements.
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

}}}   // namespace millrace::detail

namespace millrace { inline namespace MILLRACE_ABI {

/// Options of from().
struct source_options {
  std::uint64_t seed = 0;   ///< seed of the shuffle and of all random numbers in the flow
};

namespace detail {

template <class R>
concept iterable = requires(const R& range) {
  std::begin(range) == std::end(range);
  *std::begin(range);
};
template <class G>
concept generator = std::invocable<G&> && requires(G& next) {
  { next().has_value() } -> std::convertible_to<bool>;
  *next();
};
/// The type in which a flow stores the argument of from(). A function is stored as a pointer.
template <class Source>
using stored_source = std::conditional_t<std::is_function_v<std::remove_reference_t<Source>>, std::decay_t<Source>,
                                         std::remove_cvref_t<Source>>;

/// All types that from() accepts. A generator that cannot be copied must be an rvalue.
template <class Source, class Plain = stored_source<Source>>
concept source_argument = source_like<Plain> || iterable<Plain> ||
                          (generator<Plain> && std::constructible_from<Plain, Source>);

/// A source that reads a range. If from() received an rvalue, the source owns the range.
template <class Range>
struct range_source {
  using item = std::remove_cvref_t<element_of<Range>>;
  using planned = indexed_run<range_data<Range>>;
  static constexpr bool also_streams = true;
  std::shared_ptr<const Range> range;

  struct reader {
    std::shared_ptr<const Range> range;
    decltype(std::begin(std::declval<const Range&>())) at, end;
    std::optional<item> next() { return at == end ? std::nullopt : std::optional<item>(*at++); }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {range, std::begin(*range), std::end(*range)}; }
  /// Returns a run in an exact order.
  owner<planned_run> plan(const indexed_run_options& o) const
    requires indexable_range<Range>
  {
    return make_owner<planned>(std::make_shared<range_data<Range>>(range), o);
  }
};

template <class G>
struct generator_source {
  using item = std::remove_cvref_t<decltype(*std::declval<G&>()())>;
  static constexpr bool one_reader_at_a_time = true;
  static constexpr bool begins_at_pass_0 = true;
  std::shared_ptr<G> generator;

  struct reader {
    std::shared_ptr<G> generator;
    std::optional<item> next() { return (*generator)(); }
  };
  std::size_t shards() const { return 1; }
  reader open(std::size_t, std::uint64_t) const { return {generator}; }
};

namespace diagnose {

struct no_source {
  // clang-format off
  template <class Source>
    requires(!detail::source_argument<Source> && !detail::generator<detail::stored_source<Source>>)
  __attribute__((unavailable("millrace: from() is given no source: expected a range, a callable that returns "
                             "std::optional<item>, or a type with item, shards() and open(shard, epoch). Pass one.")))
  no_source(Source&&) {}
  template <class Source>
    requires(!detail::source_argument<Source> && detail::generator<detail::stored_source<Source>>)
  __attribute__((unavailable("millrace: the generator in from() cannot be copied. Move it: from(std::move(it)).")))
  no_source(Source&&) {}
  // clang-format on
};

}   // namespace diagnose

}   // namespace detail

/// Returns a flow that reads `source`: a range, a callable that returns std::optional<item>, or a source type.
template <detail::source_argument Source>
constexpr auto from(Source&& source, source_options options = {}) {
  using plain = detail::stored_source<Source>;
  const auto start = [&options]<class S>(S s) {
    return detail::flow<typename S::item, S>{{}, std::move(s), options.seed};
  };
  if constexpr (detail::source_like<plain>) {
    return start(plain(std::forward<Source>(source)));
  } else if constexpr (detail::iterable<plain> && std::is_lvalue_reference_v<Source>) {
    // The pointer owns nothing, because the caller owns the range.
    return start(detail::range_source<plain>{std::shared_ptr<const plain>(std::shared_ptr<void>(), &source)});
  } else if constexpr (detail::iterable<plain>) {
    return start(detail::range_source<plain>{std::make_shared<const plain>(std::move(source))});
  } else {
    return start(detail::generator_source<plain>{std::make_shared<plain>(std::forward<Source>(source))});
  }
}
/// Overload for an argument that is not a source. The compiler shows the reason.
detail::broken_flow from(detail::diagnose::no_source, source_options = {});

}}   // namespace millrace
