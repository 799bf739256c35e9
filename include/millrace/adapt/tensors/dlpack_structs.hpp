// The structs of DLPack. Tensor libraries share memory through these structs. Their layout never changes, so no header
// of DLPack is needed.
//
//   mr::dlpack_managed* exported = mr::detail::export_dlpack<mr::dlpack_managed>(column, shared);
//   exported->deleter(exported);                         // the receiver calls it, on any thread
//
// Format: DLManagedTensor of DLPack 0.2 to 1.x, and DLManagedTensorVersioned of 1.x.
// Errors: std::bad_alloc. Threads: any thread may call a deleter.
#pragma once

#include <millrace/base/half.hpp>
#include <millrace/item/tensor/tensor.hpp>
#include <millrace/item/tensor/tensor_view.hpp>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace millrace { inline namespace MILLRACE_ABI {

/// DLPack's DLDevice.
struct dlpack_device {
  std::int32_t device_type, device_id;
};
/// DLPack's DLDataType.
struct dlpack_data_type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
/// DLPack's DLTensor.
struct dlpack_view {
  void* data;
  dlpack_device device;
  std::int32_t ndim;
  dlpack_data_type dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
/// DLPack's DLManagedTensor.
struct dlpack_managed {
  dlpack_view dl_tensor;
  void* manager_ctx;
  void (*deleter)(dlpack_managed*);
};
/// DLPack's DLManagedTensorVersioned.
struct dlpack_versioned {
  std::uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(dlpack_versioned*);
  std::uint64_t flags;
  dlpack_view dl_tensor;
};

namespace detail {

inline constexpr std::int32_t dlpack_cpu = 1, dlpack_cuda = 2, dlpack_cuda_host = 3, dlpack_cuda_managed = 13;
inline constexpr std::uint8_t dlpack_int = 0, dlpack_uint = 1, dlpack_float = 2, dlpack_bfloat = 4, dlpack_bool = 6;

template <tensor_element T>
constexpr dlpack_data_type dlpack_type() noexcept {
  std::uint8_t code = dlpack_int;
  if constexpr (std::is_same_v<T, bool>) code = dlpack_bool;
  else if constexpr (std::is_same_v<T, bf16>) code = dlpack_bfloat;
  else if constexpr (std::is_same_v<T, f16> || std::is_floating_point_v<T>) code = dlpack_float;
  else if constexpr (std::is_unsigned_v<T>) code = dlpack_uint;
  return {.code = code, .bits = static_cast<std::uint8_t>(sizeof(T) * CHAR_BIT), .lanes = 1};
}

/// A row-major tensor of up to eight dimensions. `rank` is the number of dimensions.
struct dlpack_column {
  static constexpr std::size_t max_rank = 8;

  void* data = nullptr;
  dlpack_data_type type{};
  dlpack_device device{dlpack_cpu, 0};
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> shape{};

  std::size_t bytes() const noexcept {
    std::size_t product = type.bits / CHAR_BIT;
    for (std::size_t d = 0; d < rank; ++d) product *= static_cast<std::size_t>(shape[d]);
    return product;
  }
};

/// Describes a column of a batch. The column is in host memory, or in the memory of the GPU with the number `ordinal`.
template <class T, std::size_t N>
dlpack_column dlpack_column_of(const tensor_view<T, N>& view, int ordinal) noexcept {
  static_assert(N <= dlpack_column::max_rank);
  const bool on_host = view.memory == memory_kind::host;
  dlpack_column c{.data = const_cast<std::remove_const_t<T>*>(view.data),
                  .type = dlpack_type<std::remove_const_t<T>>(),
                  .device = {on_host ? dlpack_cpu : dlpack_cuda, on_host ? 0 : ordinal},
                  .rank = N};
  for (std::size_t d = 0; d < N; ++d) c.shape[d] = static_cast<std::int64_t>(view.shape[d]);
  return c;
}

/// Copies a host column to memory aligned to 64 bytes. column.data then points to the copy. Returns the copy's owner.
inline std::shared_ptr<void> copy_elements(dlpack_column& column) {
  constexpr std::size_t alignment = 64;
  const std::size_t bytes = column.bytes();
  std::size_t space = bytes + alignment - 1;
  auto memory = std::make_shared_for_overwrite<std::byte[]>(space);
  void* to = memory.get();
  column.data = std::memcpy(std::align(alignment, bytes, to, space), column.data, bytes);
  return memory;
}

/// The object to which manager_ctx of an exported tensor points.
template <class Managed>
struct dlpack_export {
  Managed tensor{};
  std::array<std::int64_t, dlpack_column::max_rank> shape{}, strides{};
  std::shared_ptr<const void> owner{};

  static void destroy(Managed* tensor) { delete static_cast<dlpack_export*>(tensor->manager_ctx); }
};

/// Creates a tensor that keeps `owner` alive until the tensor's deleter is called. Managed is dlpack_managed or
/// dlpack_versioned.
template <class Managed>
Managed* export_dlpack(const dlpack_column& column, std::shared_ptr<const void> owner) {
  auto* const exported = new dlpack_export<Managed>{.shape = column.shape, .owner = std::move(owner)};
  std::int64_t stride = 1;
  for (std::size_t d = column.rank; d-- > 0;) {
    exported->strides[d] = stride;
    stride *= column.shape[d];
  }
  exported->tensor.dl_tensor = dlpack_view{.data = column.data,
                                           .device = column.device,
                                           .ndim = static_cast<std::int32_t>(column.rank),
                                           .dtype = column.type,
                                           .shape = exported->shape.data(),
                                           .strides = exported->strides.data(),
                                           .byte_offset = 0};
  exported->tensor.manager_ctx = exported;
  exported->tensor.deleter = dlpack_export<Managed>::destroy;
  if constexpr (std::is_same_v<Managed, dlpack_versioned>) exported->tensor.major = 1;
  return &exported->tensor;
}

}   // namespace detail

}}   // namespace millrace
