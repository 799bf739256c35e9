// Hosts and ports of feeders: lists of names, the addresses of a name, and the maximum number of connections.
//
//   const auto hosts = mr::detail::expand_hosts({"node[01-04]:8717", "https://feeders.svc:443"});   // 5 hosts
//   for (const std::string& address : mr::detail::resolve_host(hosts[4])) connect(address);         // "10.0.0.7"
//
// A trainer and a feeder resolve names by the same rule. Therefore both use the same address of localhost.
// Errors: setup_error for an invalid list; io_error if a name cannot be resolved. Threads: any.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a host as it is written in a URL: an IPv6 address is in brackets.
inline std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

/// A host, such as "feeders.svc" or "::1", and a port.
struct host_port {
  std::string host{}, port{};

  std::string name() const { return bracketed(host) + ":" + port; }
};
/// A host of the options.
struct feeder_host : host_port {
  std::string scheme{"http"};   ///< or "https"
};

/// Splits a text such as "0.0.0.0:8717" or "[::1]:0". The result is empty if the text is not HOST:PORT with a port of
/// at most 65535.
std::optional<host_port> split_host_port(std::string_view text);
/// Expands lists. Throws setup_error.
std::vector<feeder_host> expand_hosts(const std::vector<std::string>& lists);
/// Returns the numeric IPv4 addresses of a host; if it has none, its IPv6 addresses. Throws io_error.
std::vector<std::string> resolve_host(const host_port& host);
/// Returns `most`, or a third of the files that the process may open (`ulimit -n`) if that is less.
std::size_t connection_limit(std::size_t most) noexcept;

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/feeders/impl/feeder_hosts.inl>
#endif
