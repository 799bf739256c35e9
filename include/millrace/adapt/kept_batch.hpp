// A batch that tensors of another library keep: the slot is released when the last of them is gone.
//
//   const auto kept = detail::keep(std::move(b), {.stream = s});   // a shared_ptr; each tensor's deleter holds a copy
//
// The release is an event in the batch's own stream and in the consumer's, which also waits for the batch to arrive.
// So a tensor may die on the host while kernels that read it are still to come. Errors: those of also_used_on(); the
// batch is still the caller's then. Threads: the last owner may be on any thread, even after the session.
#pragma once

#include <millrace/deliver/batch.hpp>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// Where tensors of a batch are worked on.
struct consumer_options {
  std::optional<stream_view> stream{};   ///< that works on the tensors; none: the batch's own, given to to_device()
};

namespace detail {

template <auto... Members>
std::shared_ptr<const batch_of<Members...>> keep(batch_of<Members...>&& b, const consumer_options& consumer) {
  if (!b) throw setup_error("an empty batch was to become tensors", "It was released or moved before");
  if (consumer.stream && consumer.stream->handle != b.stream().handle) b.also_used_on(*consumer.stream);
  return std::make_shared<const batch_of<Members...>>(std::move(b));
}

/// A view for each tensor that a batch becomes: one of each column, but of a ragged one its values, then its lengths.
template <auto... Members>
auto tensors_of(const batch_of<Members...>& b) {
  const auto views = []<class View>(const View& column) {
    if constexpr (requires { column.lengths; }) return std::tuple(column.values, column.lengths);
    else return std::tuple(column);
  };
  return std::tuple_cat(views(b.template get<Members>())...);
}

}  // namespace detail

}}  // namespace millrace
