// Converts a batch to LibTorch tensors without a copy, on the host and on a GPU.
//
//   #include <millrace/adapt/torch.hpp>
//   for (auto& b : run) {
//     auto [pixels, labels] = mr::to_torch(std::move(b));               // one at::Tensor for each column; two for
//                                                                       // a ragged column
//     auto loss = criterion(model(pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).div_(255)), labels);
//     ...
//   }                                                                   // both destroyed: the slot is free again
//
// Opt-in: needs LibTorch (libtorch-dev, or the C++ part of a PyTorch wheel).
// The tensors own the batch. The slot (memory) of the batch stays in use while a tensor, or a view of a tensor, exists.
// The slot stays in use even after the end of the session. A list of tensors, or the autograd graph of a stored loss,
// keeps slots in use.
// If all slots are in use, next() throws an error. If other threads own the tensors, set
// session_options{.leases_released_by_other_threads}. With this option, next() waits for a slot.
// Tensors have the shapes and types of the columns. Exception: u16, u32 and u64 become signed types with the same bits,
// because torch cannot compute with these unsigned types.
// On a GPU, the tensors can be used in the stream of to_device(). This is torch's default stream unless you set the
// option .stream of to_device(). For a training step in another stream, call to_torch(std::move(b), {.stream =
// at::cuda::getCurrentCUDAStream()}). The slot is reused only after that stream has completed the work that was queued
// before the last tensor was destroyed. You may write to the tensors.
// Errors: setup_error for an empty batch. With the option .stream of to_torch(), also the errors of also_used_on()
// (deliver/batch_lease.hpp). Threads: any thread may destroy tensors.
#pragma once

#include <millrace/adapt/tensors/shared_batch.hpp>

#if !__has_include(<ATen/ops/from_blob.h>)
#error "millrace: LibTorch is not installed: apt-get install libtorch-dev, or name a PyTorch's include folder by -I"
#endif
#include <ATen/ops/from_blob.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

template <tensor_element T>
constexpr at::ScalarType torch_type() noexcept {
  if constexpr (std::is_same_v<T, f16>) return at::kHalf;
  else if constexpr (std::is_same_v<T, bf16>) return at::kBFloat16;
  else if constexpr (std::is_same_v<T, bool>) return at::kBool;
  else if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? at::kFloat : at::kDouble;
  else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? at::kChar : at::kByte;
  else return sizeof(T) == 2 ? at::kShort : sizeof(T) == 4 ? at::kInt : at::kLong;
}

template <class T, std::size_t N>
at::Tensor export_torch(const tensor_view<T, N>& view, int ordinal, std::shared_ptr<const void> owner) {
  std::array<std::int64_t, N> shape;
  for (std::size_t d = 0; d < N; ++d) shape[d] = static_cast<std::int64_t>(view.shape[d]);
  const at::Device where = view.memory == memory_kind::host
                               ? at::Device(at::kCPU)
                               : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ordinal));
  return at::for_blob(const_cast<std::remove_const_t<T>*>(view.data), shape)
      .deleter([owner = std::move(owner)](void*) mutable { owner.reset(); })
      .options(at::TensorOptions(torch_type<std::remove_const_t<T>>()).device(where))
      .target_device(where)   // without this call, torch queries the CUDA driver
      .make_tensor();
}

}   // namespace detail

/// Returns a std::array of tensors, one for each column in the order of batch<...>. A ragged column has two tensors:
/// the values, and the lengths, sizes or offsets. If rows are mixed (mixup, cutmix), two more tensors follow: label_b
/// and lambda. Throws setup_error if the batch is empty. If `consumer` names a stream, throws the errors of
/// also_used_on() (deliver/batch_lease.hpp) for this stream.
template <detail::owned_batch Batch>
auto to_torch(Batch&& b, const consumer_options& consumer = {}) {
  const auto shared = detail::share(std::move(b), consumer);
  return std::apply(
      [&](const auto&... views) {
        return std::array{detail::export_torch(views, shared->device_ordinal(), shared)...};
      },
      detail::tensors_of(*shared));
}

}}   // namespace millrace
