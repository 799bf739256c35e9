// Exports the columns of a batch as DLPack tensors, and imports DLPack tensors as arrays. Tensor libraries use DLPack
// to share memory without a copy.
//
//   #include <millrace/adapt/dlpack.hpp>
//   auto [pixels, labels] = mr::to_dlpack(std::move(b), {.stream = s});       // one dlpack_tensor for each column
//   at::Tensor x = at::fromDLPack(pixels.release());                          // the receiver calls its deleter
//   auto back = mr::from_dlpack<std::uint8_t, 4>(mr::dlpack_tensor(at::toDLPack(x)));   // elements: back.view()
//
// Opt-in. No header of DLPack is needed. dlpack_tensor converts from and to the DLManagedTensor* of any copy of
// dlpack.h, such as <ATen/dlpack.h>.
// Export: tensors are row-major, with strides. A ragged column becomes two tensors: the values, and the lengths, sizes
// or offsets. The tensors own the batch. When the last tensor of a batch is destroyed, the slot of the batch is
// released (adapt/tensors/shared_batch.hpp). If a training loop keeps tensors of all slots, next() throws setup_error
// instead of returning a batch.
// Import: the tensor must be row-major, with the given element type and rank, on the host or on a GPU. Your work on a
// GPU tensor must wait for the stream that wrote the tensor.
// Errors: setup_error if the tensor's type, rank, device or layout is wrong. In this case, the tensor's deleter is
// called.
// Threads: any thread may call a deleter. Format: DLManagedTensor, which is the same in versions 0.2 to 1.x of DLPack.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/adapt/tensors/dlpack_structs.hpp>
#include <millrace/adapt/tensors/shared_batch.hpp>

#include <array>
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

/// A DLManagedTensor of any copy of dlpack.h.
template <class T>
concept dlpack_struct = sizeof(T) == sizeof(dlpack_managed) && requires(T& tensor) {
  tensor.dl_tensor.byte_offset;
  tensor.manager_ctx;
  tensor.deleter(&tensor);
};

}   // namespace detail

/// A pointer that converts to the DLManagedTensor* of any copy of dlpack.h.
struct dlpack_pointer {
  dlpack_managed* tensor;

  /// `Managed` may be const, as in at::fromDLPack() of LibTorch 1.13.
  template <class Managed>
    requires detail::dlpack_struct<std::remove_const_t<Managed>>
  operator Managed*() const noexcept {
    return reinterpret_cast<Managed*>(tensor);
  }
};

/// Owns a DLManagedTensor until release() transfers the ownership to a receiver.
class dlpack_tensor {
 public:
  dlpack_tensor() = default;
  /// Becomes the owner of a tensor. `Managed` may be the DLManagedTensor of any copy of dlpack.h.
  template <detail::dlpack_struct Managed>
  explicit dlpack_tensor(Managed* tensor) noexcept : tensor_(reinterpret_cast<dlpack_managed*>(tensor)) {}

  /// Returns the tensor, or null after release(). The tensor's members have the names of DLPack.
  dlpack_managed* get() const noexcept { return tensor_.get(); }
  dlpack_managed* operator->() const noexcept { return tensor_.get(); }
  explicit operator bool() const noexcept { return tensor_ != nullptr; }
  /// Deletes the tensor.
  void reset() noexcept { tensor_.reset(); }
  /// Returns the tensor as a pointer that converts to the DLManagedTensor* of any library. The receiver calls the
  /// deleter.
  [[nodiscard]] dlpack_pointer release() noexcept { return {tensor_.release()}; }

 private:
  struct call_deleter {
#ifdef __clang__   // the deleter of another library has another function type, which clang's sanitizer reports
    __attribute__((no_sanitize("function")))
#endif
    void
    operator()(dlpack_managed* tensor) const noexcept {
      if (tensor->deleter) tensor->deleter(tensor);
    }
  };
  std::unique_ptr<dlpack_managed, call_deleter> tensor_;
};

namespace detail {

inline std::string describe_dlpack(const dlpack_view& t) {
  std::string text = "device type " + std::to_string(t.device.device_type) + ", type code " +
                     std::to_string(t.dtype.code) + ", " + std::to_string(t.dtype.bits) + " bits x " +
                     std::to_string(t.dtype.lanes) + ", shape [";
  for (int d = 0; d < t.ndim; ++d) text += (d ? ", " : "") + std::to_string(t.shape[d]);
  text += "]";
  for (int d = 0; t.strides && d < t.ndim; ++d) text += (d ? ", " : ", strides [") + std::to_string(t.strides[d]);
  return t.strides && t.ndim > 0 ? text + "]" : text;
}

/// Returns whether the elements are contiguous in row-major order. Returns true if the tensor is empty.
inline bool is_dlpack_row_major(const dlpack_view& t) noexcept {
  std::int64_t stride = 1;
  bool same = true;
  for (int d = t.ndim; d-- > 0;) {
    if (t.shape[d] == 0) return true;
    if (t.shape[d] > 1 && t.strides && t.strides[d] != stride) same = false;
    stride *= t.shape[d];
  }
  return same;
}

}   // namespace detail

/// Owns a tensor of another library. If your item type has a member of this type, the member becomes a column of the
/// batch.
template <detail::tensor_element T, std::size_t N>
class dlpack_array {
 public:
  using element = T;

  /// Becomes the owner of the tensor.
  /// Throws setup_error if the tensor has another element type, rank or device, or is not row-major.
  explicit dlpack_array(dlpack_tensor tensor) : tensor_(std::move(tensor)) {
    const dlpack_view& t = tensor_->dl_tensor;
    constexpr dlpack_data_type expected = detail::dlpack_type<T>();
    const int kind = t.device.device_type;
    const bool on_host = kind == detail::dlpack_cpu || kind == detail::dlpack_cuda_host;
    const bool on_gpu = kind == detail::dlpack_cuda || kind == detail::dlpack_cuda_managed;
    const bool same_type = t.dtype.code == expected.code && t.dtype.bits == expected.bits && t.dtype.lanes == 1;
    if ((!on_host && !on_gpu) || !same_type || t.ndim != static_cast<int>(N) || !detail::is_dlpack_row_major(t))
      throw setup_error("a DLPack tensor has the wrong type or layout: got " + detail::describe_dlpack(t) +
                            ", expected " + std::to_string(N) + " dimensions of " +
                            std::string(detail::dtype_name<T>()) + " (type code " + std::to_string(expected.code) +
                            ", " + std::to_string(expected.bits) + " bits), row-major, on the host or an NVIDIA GPU",
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
/// the values, and the lengths, sizes or offsets. If rows are mixed (mixup, cutmix), two more tensors follow: label_b
/// and lambda. Throws setup_error if the batch is empty. If `consumer` names a stream, throws the errors of
/// also_used_on() (deliver/batch_lease.hpp) for this stream.
template <detail::owned_batch Batch>
auto to_dlpack(Batch&& b, const consumer_options& consumer = {}) {
  const auto shared = detail::share(std::move(b), consumer);
  return std::apply(
      [&](const auto&... views) {
        return std::array{dlpack_tensor(detail::export_dlpack<dlpack_managed>(
            detail::dlpack_column_of(views, shared->device_ordinal()), shared))...};
      },
      detail::tensors_of(*shared));
}

}}   // namespace millrace
