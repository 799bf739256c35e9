// Definitions for host.hpp.
#pragma once

#include <millrace/device/host.hpp>

#include <millrace/item/owner.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE device host_device() { return device(detail::make_shared_object<host_backend>()); }

}}   // namespace millrace
