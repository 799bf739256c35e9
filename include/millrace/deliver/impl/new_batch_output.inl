// Definitions for new_batch_output.hpp.
#pragma once

#include <millrace/base/aligned_allocator.hpp>
#include <millrace/deliver/new_batch_output.hpp>

#include <millrace/deliver/device_batch_output.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::shared_ptr<batch_output> new_batch_output(const to_device_options& o, bool threaded) {
  auto backend = o.device.backend();
  if (auto own = backend->for_one_session()) backend = std::move(own);
  if (backend->leases_host_slots()) return std::make_shared<host_batch_output>(std::move(backend), o.fixed_slots);
  return make_aligned_shared<device_batch_output>(
      std::move(backend), device_batch_output::options{.device_slots = std::max<std::size_t>(1, o.slots),
                                                       .stream = o.stream,
                                                       .threaded = threaded,
                                                       .fixed_slots = o.fixed_slots});
}

}}}  // namespace millrace::detail
