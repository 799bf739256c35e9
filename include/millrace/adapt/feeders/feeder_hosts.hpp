// Hosts and ports of feeders: lists of names, the addresses of a name, and the maximum number of connections.
//
//   const auto hosts = mr::detail::expand_hosts({"node[01-04]:8717", "https://feeders.svc:443"});   // 5 hosts
//   for (const std::string& address : mr::detail::resolve_host(hosts[4])) connect(address);         // "10.0.0.7"
//
// A trainer and a feeder resolve names by the same rule. Therefore both use the same address of localhost.
// Errors: setup_error for an invalid list; io_error if a name cannot be resolved. Threads: any.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/sources/list/brace_expansion.hpp>

#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A host, such as "feeders.svc" or "::1", and a port.
struct feeder_host {
  std::string host{}, port{}, scheme{"http"};   // scheme: "http" or "https"
  std::string numeric{};                        // an address to which the host was resolved

  /// Returns the host as a URL contains it: an IPv6 address is enclosed in brackets.
  static std::string bracketed(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
  }
  std::string name() const { return bracketed(host) + ":" + port; }
  std::string text() const { return name() + " (" + numeric + ")"; }
};

/// Converts a Slurm host list to a pattern with braces: "node[01-04,7],big:1" to "{node{{01..04},{7..7}},big}:1".
inline std::string slurm_list_as_braces(std::string_view list) {
  std::string text;
  while (!list.empty()) {
    const std::size_t open = list.find('['), close = list.find(']', open);
    text += list.substr(0, open);
    if (close == list.npos) break;
    const std::string_view ranges = list.substr(open + 1, close - open - 1);
    list.remove_prefix(close + 1);
    if (ranges.find(':') != ranges.npos) {   // an IPv6 address
      text += "[" + std::string(ranges) + "]";
      continue;
    }
    std::string choices;
    for (std::size_t at = 0; at <= ranges.size();) {
      const std::string_view range = ranges.substr(at, ranges.find(',', at) - at);
      const std::size_t dash = range.find('-');   // without a dash: a range of one number
      choices += (at == 0 ? "{" : ",{") + std::string(range.substr(0, dash)) + ".." +
                 std::string(range.substr(dash == range.npos ? 0 : dash + 1)) + "}";
      at += range.size() + 1;
    }
    text += ranges.find(',') == ranges.npos ? choices : "{" + choices + "}";
  }
  int depth = 0;   // number of open braces
  const bool has_names = std::any_of(text.begin(), text.end(), [&depth](char c) {
    depth += (c == '{') - (c == '}');
    return c == ',' && depth == 0;
  });
  const std::size_t begin = text.starts_with("https://") ? 8 : 0, port = text.rfind(':');
  if (!has_names || port == text.npos || port < begin) return text;
  return text.substr(0, begin) + "{" + text.substr(begin, port - begin) + "}" + text.substr(port);
}

/// Splits a text such as "0.0.0.0:8717" or "[::1]:0". The result is empty if the text is not HOST:PORT with a port of
/// at most 65535.
inline std::optional<feeder_host> split_host_port(std::string_view text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(std::min(colon + 1, text.size()));
  const bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
  if (is_ipv6) host = host.substr(1, host.size() - 2);
  const bool is_valid = host.find_first_of(is_ipv6 ? "/@[]" : "/@[]:{},?#\\ \t\r\n") == host.npos && !host.empty();
  if (!is_valid || decimal_number(port).value_or(65'536) > 65'535) return std::nullopt;
  return feeder_host{std::string(host), std::string(port)};
}

/// Expands lists of hosts. Throws setup_error for an invalid host.
inline std::vector<feeder_host> expand_hosts(const std::vector<std::string>& lists) {
  std::vector<feeder_host> all;
  for (const std::string& list : lists)
    for (std::string_view text : expand_braces(slurm_list_as_braces(list), 4'096)) {
      const bool is_secure = text.starts_with("https://");
      if (is_secure || text.starts_with("http://")) text.remove_prefix(is_secure ? 8 : 7);
      auto host = split_host_port(text);
      if (!host || decimal_number(host->port) == 0)
        throw setup_error("feeder_options::hosts has an invalid host: got \"" + printable(list, 300) +
                              "\", expected HOST:PORT, https://HOST:PORT or a list like node[01-04,7]:8717",
                          "Write each host or list as a separate string", {.stage = "feeders"});
      if (is_secure) host->scheme = "https";
      all.push_back(*std::move(host));
    }
  return all;
}

/// Returns the numeric IPv4 addresses of a host, or its IPv6 addresses if it has no IPv4 address. Throws io_error if
/// the name cannot be resolved.
inline std::vector<std::string> resolve_host(const feeder_host& host) {
  ::addrinfo how{}, *first = nullptr;
  how.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(host.host.c_str(), nullptr, &how, &first); code != 0)
    throw io_error(
        "the host " + printable(host.name(), 300) + " of a feeder cannot be resolved: " + ::gai_strerror(code),
        "Check the name", {.stage = "feeders"});
  const std::unique_ptr<::addrinfo, void (*)(::addrinfo*)> owner(first, [](::addrinfo* a) { ::freeaddrinfo(a); });
  std::vector<std::string> v4, v6;
  for (const ::addrinfo* a = first; a; a = a->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      (a->ai_family == AF_INET ? v4 : v6).emplace_back(text);
  }
  return v4.empty() ? v6 : v4;
}

/// Returns the maximum number of connections: a third of the process's limit of open files (`ulimit -n`), but at least
/// 1 and at most `most`.
inline std::size_t feeder_connection_limit(std::size_t most) noexcept {
  ::rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return most;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(files.rlim_cur / 3, 1, most));
}

}}}   // namespace millrace::detail
