// Kernels for tests without a GPU: to be included before any .cuh header, which are then compiled for the host.
#pragma once

#define MILLRACE_KERNELS_ON_HOST

#include <millrace/device/kernel.cuh>

inline std::vector<std::shared_ptr<void>>& millrace::detail::bodies_in_graphs() {
  static std::vector<std::shared_ptr<void>> bodies;
  return bodies;
}
