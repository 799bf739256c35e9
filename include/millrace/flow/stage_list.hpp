// The stages of a flow, in order.
//
//   mr::detail::stage_list<> none;
//   auto one = append(std::move(none), first_stage);     // stage_list<First>
//   auto two = append(std::move(one), second_stage);     // stage_list<First, Second>
//   for_each(two, [](const auto& stage) { /* in the order of the flow */ });
//   auto rest = std::move(two.rest);                     // stage_list<Second>
//
// A stage_list compiles faster than std::tuple. Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The empty list.
template <class... Stages>
struct stage_list {
  static constexpr std::size_t size = 0;
};

/// A stage and the stages after it.
template <class First, class... Rest>
struct stage_list<First, Rest...> {
  static constexpr std::size_t size = 1 + sizeof...(Rest);

  First first;
  stage_list<Rest...> rest{};
};

/// Returns the list with one more stage at its end.
template <class... Stages, class Stage>
constexpr stage_list<Stages..., Stage> append(stage_list<Stages...>&& list, Stage stage) {
  if constexpr (sizeof...(Stages) == 0) return {std::move(stage), {}};
  else return {std::move(list.first), append(std::move(list.rest), std::move(stage))};
}

/// Calls `visit` with each stage, from the first to the last.
template <class... Stages, class Visit>
constexpr void for_each(const stage_list<Stages...>& list, const Visit& visit) {
  if constexpr (sizeof...(Stages) > 0) {
    visit(list.first);
    for_each(list.rest, visit);
  }
}

}}}   // namespace millrace::detail
