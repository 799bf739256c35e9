// A batch as LibTorch's tensors, without a copy, on the host and on a GPU. Opt-in: needs LibTorch (libtorch-dev, or the
// C++ part of a PyTorch wheel).
//
//   #include <millrace/adapt/torch.hpp>
//   for (auto& b : run) {
//     auto [pixels, labels] = mr::to_torch(std::move(b));               // at::Tensor, one for each column; two for a
//                                                                       // ragged one: values, lengths
//     auto loss = criterion(model(pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).div_(255)), labels);
//     ...
//   }                                                                   // both gone: the slot is free again
//
// The batch moves into its tensors; whatever keeps one of them, or a view of it (a list, autograd's graph of a loss
// that is kept), keeps its slot, also after the session. When all slots are kept next() throws; with
// session_options{.leases_released_by_other_threads} it waits, as kept tensors of other threads ask for.
// Shapes are those of the columns. Types are the same, but for u16, u32 and u64, which torch cannot compute with: they
// come as signed, with the same bits. On a GPU tensors are ready for work in the stream given to to_device(); its
// default is torch's own default. For steps in another one: to_torch(std::move(b), {.stream =
// at::cuda::getCurrentCUDAStream()}); the slot is written again when the work that it had then is through.
// Writing into a tensor writes into the slot, which nobody else reads. Errors: setup_error for an empty batch, and
// those of also_used_on(). Threads: tensors may die on any.
#pragma once

#include <millrace/adapt/kept_batch.hpp>

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
at::Tensor export_torch(const tensor_view<T, N>& view, int ordinal, std::shared_ptr<const void> kept) {
  std::array<std::int64_t, N> shape;
  for (std::size_t d = 0; d < N; ++d) shape[d] = static_cast<std::int64_t>(view.shape[d]);
  const at::Device where = view.memory == memory_kind::host
                               ? at::Device(at::kCPU)
                               : at::Device(at::kCUDA, static_cast<at::DeviceIndex>(ordinal));
  return at::for_blob(const_cast<std::remove_const_t<T>*>(view.data), shape)
      .deleter([kept = std::move(kept)](void*) mutable { kept.reset(); })
      .options(at::TensorOptions(torch_type<std::remove_const_t<T>>()).device(where))
      .target_device(where)   // else torch asks the driver
      .make_tensor();
}

}  // namespace detail

/// A std::array of all columns, in the order of batch<...>; of a ragged one its values, then its lengths.
template <auto... Members>
auto to_torch(batch_of<Members...>&& b, const consumer_options& consumer = {}) {
  const auto kept = detail::keep(std::move(b), consumer);
  return std::apply(
      [&](const auto&... views) { return std::array{detail::export_torch(views, kept->device_ordinal(), kept)...}; },
      detail::tensors_of(*kept));
}

}}  // namespace millrace
