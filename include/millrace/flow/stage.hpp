// START HERE to write a source or a stage of your own. No base class, no macro, no registration: three shapes.
//
// 1. A one-to-one stage is any callable. It goes into map(). Its arguments decide what it gets: the item, then, if it
//    asks for them, the sample's random stream and the worker's scratch memory. It runs on many threads at once, so
//    it must be callable through a const reference. A bad item is reported by throwing.
//
//      example prepare(const mr::record& r, mr::rng& rng);
//      auto flow = mr::shards("train-{000..146}.tar") | mr::map(prepare) | ...
//
// 2. An expanding stage makes any number of items out of one. It goes into expand(). With a const push and no finish
//    it runs in parallel; otherwise on one thread, in order. Its outputs keep the order of their inputs.
//
//      struct windows_of {
//        using output = window;
//        std::size_t frames;
//        std::size_t max_outputs(const clip& c) const { return c.size() / frames; }
//        void push(clip c, auto& emit) const { for (...) emit(window{...}); }
//        void finish(auto& emit);                      // optional: what is still held when an epoch ends
//      };
//
//    A stage that cannot know goes without max_outputs(): expand(stage, {.max_outputs = 1'000}).
//    A resumed run enters such a flow at the beginning of an epoch if there is a finish(), which is expected to leave
//    the stage as it was at first; without one only at the very beginning.
//
// 3. A source makes items, in parts that can be read independently (shards, files). It goes into from().
//
//      struct numbers {
//        using item = int;
//        struct reader {
//          int at, end;
//          std::optional<int> next() { return at < end ? std::optional(at++) : std::nullopt; }
//          void report(event_counts& counts) const;            // optional: at the part's end, for stats().counts
//        };
//        std::size_t shards() const { return 4; }
//        reader open(std::size_t part, std::uint64_t epoch) const { return {int(part) * 10, int(part) * 10 + 10}; }
//        std::string shard_name(std::size_t part) const;     // optional: for messages, and for resume points
//        std::uint64_t shard_bytes(std::size_t shard) const;  // optional: resume points know the data by both
//        std::int64_t shard_modified_ns(std::size_t shard) const;  // optional: when; told if it changed
//        static constexpr bool same_every_pass = true;      // optional: open() does not look at the epoch
//        static constexpr bool one_reader_at_a_time = true;   // optional: parts are opened one after the other
//        static constexpr bool begins_at_pass_0 = true;       // optional: it cannot be entered in a later epoch
//      };
//
//    Its items may have a key(), a std::string or std::string_view: what batch({.keys = true}) calls them.
//
// Threads: open() and each reader's next() are called from I/O threads, one thread at a time for each reader, several
// readers at once; they may block. Lifetime: stages live in the session; a reader ends with its part.
#pragma once

#include <millrace/base/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

class rng;
class scratch;

/// What operator| recognises. Stages derive from stage_tag, flows from flow_tag.
struct stage_tag {};
/// See stage_tag.
struct flow_tag {};

template <class T>
concept stage_like = std::derived_from<std::remove_cvref_t<T>, stage_tag>;
template <class T>
concept flow_like = std::derived_from<std::remove_cvref_t<T>, flow_tag>;

/// The third shape above.
template <class S>
concept source_like = requires(const S& source, std::size_t shard, std::uint64_t epoch) {
  typename S::item;
  { source.shards() } -> std::convertible_to<std::size_t>;
  { source.open(shard, epoch).next() } -> std::convertible_to<std::optional<typename S::item>>;
};

namespace detail {

/// Calls `f` with what it asks for.
template <class F, class In>
constexpr decltype(auto) call_with_context(const F& f, In&& item, rng& random, scratch& memory) {
  if constexpr (std::invocable<const F&, In>) return f(std::forward<In>(item));
  else if constexpr (std::invocable<const F&, In, rng&>) return f(std::forward<In>(item), random);
  else if constexpr (std::invocable<const F&, In, scratch&>) return f(std::forward<In>(item), memory);
  else return f(std::forward<In>(item), random, memory);
}

template <class F, class In>
concept callable_on = std::invocable<const F&, In> || std::invocable<const F&, In, rng&> ||
    std::invocable<const F&, In, scratch&> || std::invocable<const F&, In, rng&, scratch&>;

/// Whether a call takes random numbers: such stages have an ordinal in the key of their draws.
template <class F, class In>
concept draws_on = callable_on<F, In> && !std::invocable<const F&, In> && !std::invocable<const F&, In, scratch&>;

template <class F, class In>
using call_result = decltype(call_with_context(std::declval<const F&>(), std::declval<In>(), std::declval<rng&>(),
                                               std::declval<scratch&>()));

/// Stands for the real thing when a push is only checked, not called.
template <class Output>
struct any_emitter {
  void operator()(Output) {}
};

template <class C, class In>
concept pushes_const = requires(const C& c, In in, any_emitter<typename C::output>& emit) {
  c.push(std::move(in), emit);
};
template <class C, class In>
concept pushes = requires(C& c, In in, any_emitter<typename C::output>& emit) {
  c.push(std::move(in), emit);
};
template <class C>
concept finishes = requires(C& c, any_emitter<typename C::output>& emit) {
  c.finish(emit);
};
template <class C, class In>
concept bounds_outputs = requires(const C& c, const In& in) {
  { c.max_outputs(in) } -> std::convertible_to<std::size_t>;
};

}  // namespace detail

}}  // namespace millrace
