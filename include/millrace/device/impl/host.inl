// Definitions for host.hpp.
#pragma once

#include <millrace/device/host.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE device host_device() { return device(std::make_shared<host_backend>()); }

}}   // namespace millrace
