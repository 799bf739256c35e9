// Converts batches to and from DLPack, the struct with which tensor libraries share memory without a copy.
//
//   #include <millrace/adapt/dlpack.hpp>
//   auto [pixels, labels] = mr::to_dlpack(std::move(b), {.stream = s});       // dlpack_tensor, one for each column
//   at::Tensor x = at::fromDLPack(pixels.release());                          // the receiver calls its deleter
//   auto back = mr::from_dlpack<std::uint8_t, 4>(mr::dlpack_tensor(at::toDLPack(x)));   // back.view(), or a column
//
// Opt-in: needs DLPack's header (libdlpack-dev). The copy of another library, such as <ATen/dlpack.h>, works as well if
// it is included first.
// Export: tensors are row-major, with strides. bool becomes u8. A ragged column becomes two tensors: values, lengths.
// The tensors own the batch. The batch's slot is released when its last tensor is destroyed (shared_batch.hpp). A
// training loop that keeps as many batches as there are slots does not receive another batch.
// Import: row-major tensors of the given element type and rank, on the host or on a GPU. Your work on a GPU tensor must
// wait for the stream that wrote the tensor.
// Errors: setup_error for a tensor of another type, rank, device or layout; the deleter of the tensor is called first.
// Threads: a deleter may be called on any thread. Format: DLManagedTensor of DLPack, the same in versions 0.2 to 1.x.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/adapt/shared_batch.hpp>

#ifndef DLPACK_DLPACK_H_
#if !__has_include(<dlpack/dlpack.h>)
#error "millrace: DLPack is not installed: apt-get install libdlpack-dev, or include another library's copy first"
#endif
#include <dlpack/dlpack.h>
#endif

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Deletes a tensor with the tensor's own deleter.
struct dlpack_delete {
  void operator()(DLManagedTensor* tensor) const noexcept {
    if (tensor->deleter) tensor->deleter(tensor);
  }
};

}  // namespace detail

/// Owns a tensor until release() transfers the ownership to a receiver.
using dlpack_tensor = std::unique_ptr<DLManagedTensor, detail::dlpack_delete>;

namespace detail {

template <tensor_element T>
constexpr DLDataType dlpack_type() noexcept {
  std::uint8_t code = kDLInt;
  if constexpr (std::is_same_v<T, bf16>) code = kDLBfloat;
  else if constexpr (std::is_same_v<T, f16> || std::is_floating_point_v<T>) code = kDLFloat;
  else if constexpr (std::is_unsigned_v<T>) code = kDLUInt;
  return {.code = code, .bits = static_cast<std::uint8_t>(sizeof(T) * CHAR_BIT), .lanes = 1};
}

/// The memory to which manager_ctx of an exported tensor points.
template <std::size_t N>
struct dlpack_export {
  DLManagedTensor tensor{};
  std::array<std::int64_t, N> shape{}, strides{};
  std::shared_ptr<const void> owner{};

  static void destroy(DLManagedTensor* tensor) { delete static_cast<dlpack_export*>(tensor->manager_ctx); }
};

template <class T, std::size_t N>
dlpack_tensor export_dlpack(const tensor_view<T, N>& view, int ordinal, std::shared_ptr<const void> owner) {
  auto exported = std::make_unique<dlpack_export<N>>();
  std::int64_t stride = 1;
  for (std::size_t d = N; d-- > 0;) {
    exported->shape[d] = static_cast<std::int64_t>(view.shape[d]);
    exported->strides[d] = stride;
    stride *= exported->shape[d];
  }
  exported->owner = std::move(owner);
  const bool on_host = view.memory == memory_kind::host;
  exported->tensor.dl_tensor.data = const_cast<std::remove_const_t<T>*>(view.data);
  exported->tensor.dl_tensor.device = {on_host ? kDLCPU : kDLCUDA, on_host ? 0 : ordinal};
  exported->tensor.dl_tensor.ndim = static_cast<int>(N);
  exported->tensor.dl_tensor.dtype = dlpack_type<std::remove_const_t<T>>();
  exported->tensor.dl_tensor.shape = exported->shape.data();
  exported->tensor.dl_tensor.strides = exported->strides.data();
  exported->tensor.manager_ctx = exported.get();
  exported->tensor.deleter = dlpack_export<N>::destroy;
  return dlpack_tensor(&exported.release()->tensor);
}

inline std::string describe_dlpack(const DLTensor& t) {
  std::string text = "device type " + std::to_string(static_cast<int>(t.device.device_type)) + ", type code " +
                     std::to_string(t.dtype.code) + ", " + std::to_string(t.dtype.bits) + " bits x " +
                     std::to_string(t.dtype.lanes) + ", shape [";
  for (int d = 0; d < t.ndim; ++d) text += (d ? ", " : "") + std::to_string(t.shape[d]);
  text += "]";
  for (int d = 0; t.strides && d < t.ndim; ++d) text += (d ? ", " : ", strides [") + std::to_string(t.strides[d]);
  return t.strides && t.ndim > 0 ? text + "]" : text;
}

/// Returns true if the elements are contiguous in row-major order, or if the tensor is empty.
inline bool is_row_major(const DLTensor& t) noexcept {
  std::int64_t stride = 1;
  bool same = true;
  for (int d = t.ndim; d-- > 0;) {
    if (t.shape[d] == 0) return true;
    if (t.shape[d] > 1 && t.strides && t.strides[d] != stride) same = false;
    stride *= t.shape[d];
  }
  return same;
}

}  // namespace detail

/// Owns a tensor of another library. A column of a flow may have this type.
template <detail::tensor_element T, std::size_t N>
class dlpack_array {
 public:
  using element = T;

  /// Becomes the owner of the tensor.
  /// Throws setup_error if the tensor has another element type, rank or device, or is not row-major.
  explicit dlpack_array(dlpack_tensor tensor) : tensor_(std::move(tensor)) {
    const DLTensor& t = tensor_->dl_tensor;
    constexpr DLDataType expected = detail::dlpack_type<T>();
    const int kind = t.device.device_type;
    const bool on_host = kind == kDLCPU || kind == kDLCUDAHost;
    const bool same_type = t.dtype.code == expected.code && t.dtype.bits == expected.bits && t.dtype.lanes == 1;
    if ((!on_host && kind != kDLCUDA && kind != kDLCUDAManaged) || !same_type || t.ndim != static_cast<int>(N) ||
        !detail::is_row_major(t))
      throw setup_error("a DLPack tensor has the wrong type or layout: got " + detail::describe_dlpack(t) +
                            ", expected " + std::to_string(N) + " dimensions of " +
                            std::string(detail::dtype_name<T>()) + " (type code " + std::to_string(expected.code) +
                            ", " + std::to_string(expected.bits) +
                            " bits), row-major, on the host or an NVIDIA GPU",
                        "Convert it in the library that created it, and use a contiguous tensor");
    view_.data = reinterpret_cast<T*>(static_cast<std::byte*>(t.data) + t.byte_offset);
    for (std::size_t d = 0; d < N; ++d) view_.shape[d] = static_cast<std::size_t>(t.shape[d]);
    view_.memory = on_host ? memory_kind::host : memory_kind::device;
    view_.name = "a DLPack tensor";
  }

  /// Returns a view of the tensor, on the host or on a GPU.
  const tensor_view<T, N>& view() const noexcept { return view_; }
  /// Returns the extent of each dimension.
  const std::array<std::size_t, N>& shape() const noexcept { return view_.shape; }
  /// Returns all elements of a tensor on the host.
  std::span<const T> span() const { return view_.host(); }

 private:
  dlpack_tensor tensor_;
  tensor_view<T, N> view_{};
};

/// Returns the tensor as an array of rank N.
/// Throws setup_error if the tensor has another element type, rank or device, or is not row-major.
template <detail::tensor_element T, std::size_t N>
dlpack_array<T, N> from_dlpack(dlpack_tensor tensor) {
  return dlpack_array<T, N>(std::move(tensor));
}

/// Returns a std::array of tensors, one for each column in the order of batch<...>. A ragged column has two tensors:
/// values, then lengths. Mixed rows add two tensors at the end: label_b and lambda. Throws setup_error if the batch is
/// empty, and the errors of also_used_on().
template <detail::owned_batch Batch>
auto to_dlpack(Batch&& b, const consumer_options& consumer = {}) {
  const auto shared = detail::share(std::move(b), consumer);
  return std::apply(
      [&](const auto&... views) {
    return std::array{detail::export_dlpack(views, shared->device_ordinal(), shared)...};
      },
      detail::tensors_of(*shared));
}

}}  // namespace millrace
