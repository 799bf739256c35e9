// Definitions for feeder_client.hpp. The function is declared in feeder_options.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_client.hpp>

MILLRACE_INLINE std::shared_ptr<millrace::feeder_storage> millrace::feeders(feeder_options options) {
  return std::make_shared<detail::feeder_client>(std::move(options));
}
