// Reads the type of a flow for its session: the columns of a batch, and the options of a stage.
//
//   using layout = mr::detail::columns_of<flow_type::item>::type;      // columns<&example::pixels, &example::label>
//   auto copying = mr::detail::find_stage<mr::detail::to_device_stage>(flow.stages);     // the last one, or nullopt
//
// Errors: none. Threads: pure functions.
#pragma once

#include <millrace/deliver/batch.hpp>
#include <millrace/run/pipeline_builder.hpp>

#include <optional>
#include <tuple>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

template <class Item>
struct columns_of;
template <auto... Members>
struct columns_of<batched<Members...>> {
  using type = columns<Members...>;
  using batch = batch_of<Members...>;
};

/// Returns the last stage of type Wanted in a tuple, if there is one.
template <class Wanted, class... Stages>
std::optional<Wanted> find_stage(const std::tuple<Stages...>& stages) {
  std::optional<Wanted> found;
  std::apply(
      [&](const auto&... s) {
        const auto look = [&](const auto& one) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, Wanted>) found = one;
        };
        (look(s), ...);
      },
      stages);
  return found;
}

template <class Batch>
std::size_t batch_size_of(const Batch& stage) {
  if constexpr (is_batch<Batch>) return stage.options.size;
  else return 0;
}

}}}  // namespace millrace::detail
