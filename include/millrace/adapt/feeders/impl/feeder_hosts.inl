// Definitions for feeder_hosts.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_hosts.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/sources/list/brace_expansion.hpp>

#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a list of Slurm in the form of braces: "node[01-04,7],big:1" as "{node{{01..04},{7..7}},big}:1".
MILLRACE_INLINE std::string slurm_list_as_braces(std::string_view list) {
  std::string text;
  while (!list.empty()) {
    const std::size_t open = list.find('['), close = list.find(']', open);
    text += list.substr(0, open);
    if (close == std::string_view::npos) break;
    const std::string_view ranges = list.substr(open + 1, close - open - 1);
    list.remove_prefix(close + 1);
    if (ranges.find(':') != std::string_view::npos) {   // an IPv6 address
      text += "[" + std::string(ranges) + "]";
      continue;
    }
    std::string choices;
    for (std::size_t at = 0; at <= ranges.size();) {
      const std::string_view range = ranges.substr(at, ranges.find(',', at) - at);
      const std::size_t dash = range.find('-');   // without a dash: a range of one number
      choices += (at == 0 ? "{" : ",{") + std::string(range.substr(0, dash)) + ".." +
                 std::string(range.substr(dash == std::string_view::npos ? 0 : dash + 1)) + "}";
      at += range.size() + 1;
    }
    text += ranges.find(',') == std::string_view::npos ? choices : "{" + choices + "}";
  }
  int depth = 0;   // of braces
  const bool has_names = std::any_of(text.begin(), text.end(), [&depth](char c) {
    depth += (c == '{') - (c == '}');
    return c == ',' && depth == 0;
  });
  const std::size_t begin = text.starts_with("https://") ? 8 : 0, port = text.rfind(':');
  if (!has_names || port == std::string::npos || port < begin) return text;
  return text.substr(0, begin) + "{" + text.substr(begin, port - begin) + "}" + text.substr(port);
}

MILLRACE_INLINE std::optional<host_port> split_host_port(std::string_view text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(std::min(colon + 1, text.size()));
  const bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
  if (is_ipv6) host = host.substr(1, host.size() - 2);
  const auto number = decimal_number(port);
  if (host.empty() || !number || *number > 65'535 ||
      host.find_first_of(is_ipv6 ? "/@[]" : "/@[]:{},?#\\ \t\r\n") != std::string_view::npos)
    return std::nullopt;
  return host_port{std::string(host), std::string(port)};
}

MILLRACE_INLINE std::vector<feeder_host> expand_hosts(const std::vector<std::string>& lists) {
  std::vector<feeder_host> all;
  for (const std::string& list : lists)
    for (std::string_view text : expand_braces(slurm_list_as_braces(list), 4'096)) {
      feeder_host h;
      if (text.starts_with("https://")) h.scheme = "https";
      if (text.starts_with(h.scheme + "://")) text.remove_prefix(h.scheme.size() + 3);
      auto at = split_host_port(text);
      if (!at || decimal_number(at->port) == 0)
        throw setup_error("feeder_options::hosts has an invalid host: got \"" + printable(list, 300) +
                              "\", expected HOST:PORT, https://HOST:PORT or a list like node[01-04,7]:8717",
                          "Write one string for each name or list", {.stage = "feeders"});
      static_cast<host_port&>(h) = std::move(*at);
      all.push_back(std::move(h));
    }
  return all;
}

MILLRACE_INLINE std::vector<std::string> resolve_host(const host_port& host) {
  ::addrinfo how{}, *first = nullptr;
  how.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(host.host.c_str(), nullptr, &how, &first); code != 0)
    throw io_error(
        "the host " + printable(host.name(), 300) + " of feeders cannot be resolved: " + ::gai_strerror(code),
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

MILLRACE_INLINE std::size_t connection_limit(std::size_t most) noexcept {
  ::rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return most;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(files.rlim_cur / 3, 1, most));
}

}}}   // namespace millrace::detail
