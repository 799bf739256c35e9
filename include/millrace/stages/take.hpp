// take: keeps the first `count` items of each pass through the source.
//
//   auto head = mr::lines("huge.txt.gz") | mr::take(1'000);                             // reads no further
//   auto some = mr::shards("train-{00..99}.tar") | mr::shuffle() | mr::take(10'000);  // other samples in each epoch
//   auto long_ones = mr::lines("huge.txt.gz") | mr::filter(is_long) | mr::take(500);    // the first 500 long ones
//
// Directly after a source, or after the source's shuffle, the stage ends the pass after `count` items. Therefore damage
// in later items has no effect. In any other position, the rest of the pass is read and dropped, and a resumed run
// reads the pass again from the beginning.
// Errors: setup_error for a count of 0, for several ranks, and for a source that cannot be streamed, such as files().
// Several ranks are an error because without an index they begin their passes at different steps.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/stages/expand.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Implements the stage as an expanding stage.
template <class In>
struct taking {
  using output = In;
  using keeps_name_mark = void;
  std::uint64_t count;
  std::uint64_t emitted = 0;

  std::size_t max_outputs(const In&) const { return 1; }
  void push(In item, auto& emit) {
    if (emitted == count) return;
    ++emitted;
    emit(std::move(item));
  }
  void finish(auto&) { emitted = 0; }
};

/// The result of `take()`.
struct take_stage : stage_tag {
  std::uint64_t count;

  template <class In>
  static constexpr diagnose::mistake mistake_on = diagnose::mistake::none;
  template <class In>
  using out = In;
  /// Returns an equivalent expanding stage for items of type `In`.
  template <class In>
  expand_stage<detail::taking<In>> as_expanding() const {
    return {{}, {.count = count}};
  }
};

}   // namespace detail

/// Returns the stage that keeps the first `count` items of each pass. Throws setup_error if `count` is 0.
inline detail::take_stage take(std::uint64_t count) {
  if (count == 0) throw setup_error("take(0) would drop all items: the count must be at least 1", "Set a larger count");
  return {{}, count};
}

}}   // namespace millrace
