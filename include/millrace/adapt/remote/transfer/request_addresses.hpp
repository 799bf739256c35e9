// Where the objects of all kinds of names are, with what each request has to carry: http://, https://, s3:// and gs://.
//
//   mr::detail::request_addresses addresses(options);
//   auto sent = addresses.address("https://data.example/train-000.tar");   // before each attempt
//   if (refused && addresses.heal(name, sent, answer)) ...                   // address it anew
//
// Errors: setup_error for a name of another kind; those of looking for keys. Threads: any.
#pragma once

#include <millrace/adapt/remote/store/curl_fetch.hpp>
#include <millrace/adapt/remote/store/object_stores.hpp>
#include <millrace/adapt/remote/transfer/remote_options.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

inline bool is_web_name(std::string_view name) noexcept {
  return name.starts_with("http://") || name.starts_with("https://");
}

/// Returns a name without passwords and the values of its query, which may be as good as keys.
inline std::string without_secrets(std::string_view name) {
  if (!is_web_name(name)) return std::string(name);
  const url_parts parts(name);
  const std::size_t at = parts.host.rfind('@');
  std::string plain = std::string(parts.scheme) + "://" +
                      std::string(at == std::string_view::npos ? parts.host : parts.host.substr(at + 1)) +
                      std::string(parts.path);
  return parts.query.empty() ? plain : plain + "?...";
}

/// Returns the URL as it can be sent: without a fragment, and with blanks and bytes beyond ASCII encoded.
inline std::string sendable_url(std::string_view name) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string url;
  for (const char c : name.substr(0, name.find('#'))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) url += c;
    else url.append({'%', digits[byte >> 4], digits[byte & 15]});
  }
  return url;
}

/// How to ask for objects by their names.
class request_addresses {
 public:
  explicit request_addresses(const remote_options& o)
      : headers_(o.headers),
        stores_({.s3 = o.s3, .gs = o.gs}, process_surroundings(curl_fetch({.ca_file = o.ca_file}))) {}

  /// Returns URL and headers of a request.
  addressed_request address(const std::string& name) {
    if (is_object_url(name)) return stores_.address("GET", name);
    if (!is_web_name(name))
      throw setup_error("mr::remote() has no such kind of name: got " + printable(name) +
                            ", expected http://, https://, s3:// or gs://",
                        "Correct the name, or leave out .storage for local files",
                        {.stage = "remote", .shard = name});
    return {.url = sendable_url(name), .headers = headers_};
  }

  /// Learns from a refusal. Returns whether the same request may succeed when it is addressed anew.
  bool heal(const std::string& name, const addressed_request& sent, const small_answer& answer) {
    return is_object_url(name) && stores_.heal(name, sent, answer);
  }

  /// Returns the error of a request that was refused for good.
  io_error failure(const std::string& name, const addressed_request& sent, const small_answer& answer) const {
    if (is_object_url(name)) return stores_.failure(name, sent, answer);
    const std::string hint = answer.status == 401 || answer.status == 403
                                 ? "Send what the server asks for with remote_options::headers"
                                 : "Open the address in a browser, or with curl -I";
    return {"the server refuses a request: got status " + std::to_string(answer.status) + words_of(answer) +
                ", expected 206",
            hint, {.stage = "remote", .shard = without_secrets(name)}};
  }

  /// Returns what the server says in a refusal, as " (words)"; empty if that is nothing to show.
  static std::string words_of(const small_answer& answer) {
    const store_answer said = read_store_answer(answer);
    if (!said.code.empty())
      return " (" + printable(said.code + (said.sentence.empty() ? "" : ": " + said.sentence), 300) + ")";
    // Pages in HTML say less than the status.
    const std::string kind = ascii_lower(header_value(answer.headers, "content-type"));
    const std::string_view text = trimmed(answer.body);
    if (text.empty() || text[0] == '<' || !(kind.starts_with("text/plain") || kind.find("json") != std::string::npos))
      return {};
    return " (" + printable(text.substr(0, text.find('\n')), 200) + ")";
  }

  /// Returns the sorted names that begin with `prefix`.
  std::vector<std::string> list(const std::string& prefix) {
    if (!is_object_url(prefix))
      throw setup_error("web servers cannot list their files: got " + printable(without_secrets(prefix)),
                        "Write the names with braces, like train-{000..146}.tar", {.stage = "remote"});
    return stores_.list(prefix);
  }

 private:
  const header_list headers_;
  object_stores stores_;
};

}}}  // namespace millrace::detail
