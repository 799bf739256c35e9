// Defines what world.hpp declares.
#pragma once

#include <millrace/order/world.hpp>

#include <cstdint>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE std::string world::describe() const {
  std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size);
  if (*from != '\0') text += std::string(" (") + from + ", local rank " + std::to_string(local_rank) + ")";
  return text;
}

MILLRACE_INLINE world world_from_launcher() {
  const auto look = [](const char* variable) -> const char* { return std::getenv(variable); };
  return detail::launcher_reader(look).read();
}

}}}  // namespace millrace::detail
