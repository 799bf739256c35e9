// START HERE to write a source or a stage: there is no base class, no macro and no registration.
//
// The glossary of include/millrace/README.md explains the terms of all comments, such as pass, lane, ticket and lease.
//
// 1. A one-to-one stage is any callable. Pass it to map(). Its parameters determine the arguments: the item, then
// optionally the sample's rng, then optionally the worker's scratch memory. Many threads call the callable
// concurrently, so it must be callable through a const reference. To report a bad item, throw.
//
//      example prepare(const mr::record& r, mr::rng& rng);
//      auto flow = mr::shards("train-{000..146}.tar") | mr::map(prepare) | mr::batch<&example::pixels>({.size = 64});
//
// 2. An expanding stage creates any number of items from one item. Pass it to expand(). A stage with a const push() and
// without finish() runs in parallel. Any other expanding stage runs on one thread, in order. The outputs have the order
// of their inputs.
//
//      struct windows_of {
//        using output = window;
//        std::size_t frames;
//        std::size_t max_outputs(const clip& c) const { return c.size() / frames; }
//        void push(const clip& c, auto& emit) const { for (window& w : cut(c, frames)) emit(std::move(w)); }
//        void finish(auto& emit);                      // optional: at the end of a pass, emits the remaining items
//      };
//
// If max_outputs() would be the same number for all items, omit the function and pass the number: expand(stage,
// {.max_outputs = 1'000}).
// If a flow has a stage with finish(), a resumed run reads the current pass again from its start. Therefore finish()
// must reset the stage to its initial state. If a stage runs on one thread and has no finish(), its state may depend on
// all earlier items. Therefore a resumed run reads again from the start of the run.
//
// 3. A source creates items, in shards that can be read independently. Pass it to from().
//
//      struct numbers {
//        using item = int;
//        struct reader {
//          int at, end;
//          std::optional<int> next() { return at < end ? std::optional(at++) : std::nullopt; }
//          void report(auto& counts) const;                     // optional: adds to stats().counts at the shard's end
//        };
//        std::size_t shards() const { return 4; }
//        reader open(std::size_t shard, std::uint64_t epoch) const { return {int(shard) * 10, int(shard) * 10 + 10}; }
//        std::string shard_name(std::size_t shard) const;       // optional: for messages and resume points
//        std::uint64_t shard_bytes(std::size_t shard) const;    // optional: a resumed run requires the same size
//        std::int64_t shard_modified_ns(std::size_t shard) const;   // optional: a resumed run reports a change
//        static constexpr bool same_every_pass = true;          // optional: open() ignores the epoch
//        static constexpr bool one_reader_at_a_time = true;     // optional: shards are opened sequentially
//        static constexpr bool begins_at_pass_0 = true;         // optional: a resumed run reads from pass 0
//      };
//
// An item may have a key() that converts to std::string_view. batch({.keys = true}) uses this key as the key of the
// row.
//
// Threads: I/O threads call open() and next(), and both functions may block. Several readers run concurrently, but only
// one thread at a time uses a reader.
// Lifetime: stages live in the session; a reader is destroyed at the end of its shard.
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

namespace detail {

/// Base class of the stages that map(), batch() and others return. operator| recognizes stages by this class.
struct stage_tag {};
/// Base class of every flow. operator| recognizes flows by this class.
struct flow_tag {};

/// A type that derives from stage_tag.
template <class T>
concept stage_like = std::derived_from<std::remove_cvref_t<T>, stage_tag>;
/// A type that derives from flow_tag.
template <class T>
concept flow_like = std::derived_from<std::remove_cvref_t<T>, flow_tag>;

/// A source, as described in section 3 above.
template <class S>
concept source_like = requires(const S& source, std::size_t shard, std::uint64_t epoch) {
  typename S::item;
  { source.shards() } -> std::convertible_to<std::size_t>;
  { source.open(shard, epoch).next() } -> std::convertible_to<std::optional<typename S::item>>;
};

/// True if a source declares that all its passes have the same samples.
template <class Source>
inline constexpr bool same_samples_each_pass = requires { requires Source::same_every_pass; };

/// Calls `f` with those of the three arguments that `f` accepts.
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

/// True if `F` accepts an rng.
template <class F, class In>
concept draws_on = callable_on<F, In> && !std::invocable<const F&, In> && !std::invocable<const F&, In, scratch&>;

template <class F, class In>
using call_result = decltype(call_with_context(std::declval<const F&>(), std::declval<In>(), std::declval<rng&>(),
                                               std::declval<scratch&>()));

/// An emitter with which concepts check push() at compile time. It is never called.
template <class Output>
struct any_emitter {
  void operator()(Output) {}
};

template <class C, class In>
concept pushes_const = requires(const C& c, In in, any_emitter<typename C::output>& emit) {
  c.push(std::move(in), emit);
};
template <class C, class In>
concept pushes = requires(C& c, In in, any_emitter<typename C::output>& emit) { c.push(std::move(in), emit); };
template <class C>
concept finishes = requires(C& c, any_emitter<typename C::output>& emit) { c.finish(emit); };
template <class C, class In>
concept bounds_outputs = requires(const C& c, const In& in) {
  { c.max_outputs(in) } -> std::convertible_to<std::size_t>;
};

}   // namespace detail

}}   // namespace millrace
