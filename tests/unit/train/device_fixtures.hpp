// Shared by the tests of metrics on a device: columns in its memory, a log that is read afterwards.
#pragma once

#include "../../kernels_on_host.hpp"
#include "../../cuda/fake/helpers.hpp"
#include "fixtures.hpp"

#include <millrace/train/metrics.cuh>
#include <millrace/train/metrics.hpp>

/// Numbers in device memory, `shift` elements past an aligned address.
template <class T>
struct column {
  fake_cuda_test::on_device<T> memory;
  std::size_t count, shift;

  explicit column(const std::vector<T>& values, std::size_t shifted = 0)
      : memory(values.size() + shifted + 1), count(values.size()), shift(shifted) {
    using fake_cuda_test::ok;
    if (count > 0) ok(cudaMemcpy(memory.data + shift, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    ok(cudaDeviceSynchronize());   // a copy from pageable memory may return before it completes
  }
  millrace::tensor_view<const T, 1> view() const {
    return {.data = memory.data + shift, .shape = {count}, .memory = millrace::memory_kind::device, .name = "column"};
  }
  millrace::tensor_view<const T, 2> rows(std::size_t n) const {
    return {.data = memory.data + shift, .shape = {n, n ? count / n : 0}, .memory = millrace::memory_kind::device};
  }
};

/// A log and its output.
struct logged {
  std::shared_ptr<remembering_sink::shared> memory = std::make_shared<remembering_sink::shared>();
  millrace::log out{millrace::log_options{.hold = {}}, remembering_sink{memory}};

  const std::vector<millrace::row>& rows() {
    out.close();
    return memory->rows;
  }
};
