// Definitions for feeder_hosts.hpp.
#pragma once

#include <millrace/adapt/feeders/feeder_hosts.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/text.hpp>
#include <millrace/sources/list/brace_expansion.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns a list of Slurm in the form of braces: "node[01-04,7]" as "node{{01..04},{7..7}}".
MILLRACE_INLINE std::string slurm_list_as_braces(std::string_view list) {
  std::string text;
  while (!list.empty()) {
    const std::size_t open = list.find('['), close = list.find(']', open);
    text += list.substr(0, open);
    if (close == std::string_view::npos) return text;
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
  return text;
}

MILLRACE_INLINE std::vector<feeder_host> expand_hosts(const std::vector<std::string>& lists) {
  std::vector<feeder_host> all;
  for (const std::string& list : lists)
    for (std::string_view text : expand_braces(slurm_list_as_braces(list), 4'096)) {
      feeder_host h{.scheme = text.starts_with("https://") ? "https" : "http"};
      if (text.starts_with(h.scheme + "://")) text.remove_prefix(h.scheme.size() + 3);
      const std::size_t colon = std::min(text.rfind(':'), text.size());
      h.host = text.substr(0, colon);
      h.port = text.substr(std::min(colon + 1, text.size()));
      const auto port = decimal_number(h.port);
      const bool is_ipv6 = h.host.starts_with('[') && h.host.ends_with(']');
      if (h.host.empty() || !port || *port == 0 || *port > 65535 ||
          h.host.find_first_of(is_ipv6 ? "/@" : "/@[]:{},?#\\ \t\r\n") != std::string::npos)
        throw setup_error("feeder_options::hosts has an invalid host: got \"" + printable(list, 300) +
                              "\", expected HOST:PORT, https://HOST:PORT or a list like node[01-04,7]:8717",
                          "Write one string for each name or list", {.stage = "feeders"});
      all.push_back(std::move(h));
    }
  return all;
}

MILLRACE_INLINE std::vector<std::string> resolve_host(const feeder_host& host) {
  const std::string name = host.host.starts_with('[') ? host.host.substr(1, host.host.size() - 2) : host.host;
  ::addrinfo how{}, *first = nullptr;
  how.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(name.c_str(), nullptr, &how, &first); code != 0)
    throw io_error("the host " + printable(host.name(), 300) +
                       " of feeders cannot be resolved: " + ::gai_strerror(code),
                   "Check the name", {.stage = "feeders"});
  const std::unique_ptr<::addrinfo, void (*)(::addrinfo*)> owner(first, [](::addrinfo* a) { ::freeaddrinfo(a); });
  std::vector<std::string> v4, v6;
  for (const ::addrinfo* a = first; a; a = a->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (a->ai_family == AF_INET) v4.emplace_back(text);
    else v6.push_back("[" + std::string(text) + "]");
  }
  return v4.empty() ? v6 : v4;
}

}}}   // namespace millrace::detail
