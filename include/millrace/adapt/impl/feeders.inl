// Definitions for feeders.hpp.
#pragma once

#include <millrace/adapt/feeders.hpp>

#include <millrace/adapt/feeders/feeder_client.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE std::shared_ptr<feeder_storage> feeders(feeder_options options) {
  return std::make_shared<detail::feeder_client>(std::move(options));
}

}}   // namespace millrace
