// Keeps a batch alive for tensors of another library. When the last tensor is destroyed, the slot of the batch is
// released.
//
//   const auto shared = mr::detail::share(std::move(b), {.stream = s});   // copied into each tensor's deleter
//
// The consumer is the library that uses the tensors. The slot is reused only after the batch's own stream (set by
// to_device()) and the consumer's stream have completed their work. Therefore the host may destroy a tensor before the
// kernels that read it have run. The consumer's stream waits until the batch has arrived on the GPU.
// Errors: the errors of also_used_on(). After an error, the caller still owns the batch. Threads: any thread may
// destroy the last tensor, even after the session has ended.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/deliver/batch.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

/// The stream that uses the tensors of a batch.
struct consumer_options {
  std::optional<stream_view> stream{};   ///< if empty, the batch's stream, as set by to_device()
};

namespace detail {

/// A batch type that can be moved: batch_of<...> or mixed_batch<...>.
template <class Batch>
concept owned_batch = std::derived_from<Batch, batch_lease> && requires(const Batch& b) { b.columns(); };

/// Moves the batch into a shared_ptr. Declares that the consumer's stream uses the batch. Throws setup_error if the
/// batch is empty.
template <owned_batch Batch>
std::shared_ptr<Batch> share(Batch&& b, const consumer_options& consumer) {
  if (!b)
    throw setup_error("an empty batch cannot be exported as tensors", "Export a batch before you release or move it");
  if (consumer.stream && !b.is_used_on(*consumer.stream)) b.also_used_on(*consumer.stream);
  return std::make_shared<Batch>(std::move(b));
}

/// Returns a tuple of views, one for each tensor. A column whose rows vary in size has two tensors: the values, and the
/// lengths, sizes or offsets of the rows. Any other column has one tensor.
template <owned_batch Batch>
auto tensors_of(const Batch& b) {
  const auto views = []<class View>(const View& column) {
    if constexpr (requires { column.lengths; }) return std::tuple(column.values, column.lengths);
    else if constexpr (requires { column.sizes; }) return std::tuple(column.values, column.sizes);
    else if constexpr (requires { column.offsets; }) return std::tuple(column.values, column.offsets);
    else return std::tuple(column);
  };
  return std::apply([&](const auto&... column) { return std::tuple_cat(views(column)...); }, b.columns());
}

}   // namespace detail

}}   // namespace millrace
