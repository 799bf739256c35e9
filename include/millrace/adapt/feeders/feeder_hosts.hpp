// The hosts of feeders: lists of names, and the addresses of a name.
//
//   const auto hosts = mr::detail::expand_hosts({"node[01-04]:8717", "https://feeders.svc:443"});   // 5 hosts
//   for (const std::string& address : mr::detail::resolve_host(hosts[4])) connect(address);         // "10.0.0.7"
//
// Errors: setup_error for an invalid list; io_error if a name cannot be resolved. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A host of the options.
struct feeder_host {
  std::string scheme{}, host{}, port{};   ///< "https", "feeders.svc" or "[::1]", "443"

  std::string name() const { return host + ":" + port; }
};

/// Expands lists. Throws setup_error.
std::vector<feeder_host> expand_hosts(const std::vector<std::string>& lists);
/// Returns the numeric IPv4 addresses of a host; if it has none, its IPv6 addresses, in brackets. Throws io_error.
std::vector<std::string> resolve_host(const feeder_host& host);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_hosts.inl>
#endif
