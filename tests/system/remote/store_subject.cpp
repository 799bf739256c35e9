// A program for object_stores.py: lists and reads objects of a store, which environment variables describe.
//
//   store_subject list s3://bucket/prefix        # a name in each line, percent-encoded
//   store_subject get s3://bucket/key            # its bytes
//   store_subject get s3://bucket/key 10-19      # ten of them
//
// Prints errors to stderr: the exit status is 1, and 2 for a missing object.
#include <millrace/adapt/remote/store/curl_fetch.hpp>
#include <millrace/adapt/remote/store/object_stores.hpp>
#include <millrace/adapt/remote/store/uri_encoding.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace mr = millrace;

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const std::string what = arguments[1];
  try {
    const auto env = mr::detail::process_environment(mr::detail::curl_fetch({}));
    mr::detail::object_stores stores({.gs = {.endpoint = env.variable("GS_ENDPOINT")}}, env);
    if (what == "list") {
      for (const std::string& one : stores.list(arguments[2]))
        std::puts(mr::detail::uri_encoded(one, mr::detail::slash::unchanged).c_str());
      return 0;
    }
    for (int attempt = 1;; ++attempt) {
      mr::detail::addressed_request sent;
      try {
        sent = stores.address("GET", arguments[2]);
      } catch (const mr::detail::credentials_pending& e) {
        env.sleep(e.pause_seconds);
        continue;
      }
      mr::detail::small_request request{.url = sent.url, .headers = sent.headers};
      if (count > 3) request.headers.emplace_back("Range", std::string("bytes=") + arguments[3]);
      const auto answer = env.fetch(request);
      const auto parsed = mr::detail::read_store_answer(answer);
      if (answer.status == 200 || answer.status == 206) {
        std::fwrite(answer.body.data(), 1, answer.body.size(), stdout);
        return 0;
      }
      if (parsed.is_missing_object()) {
        std::fprintf(stderr, "there is no %s\n", arguments[2]);
        return 2;
      }
      const auto next = stores.handle_refusal(arguments[2], sent, answer);
      const bool retries = next.what != mr::detail::remedy::kind::none || parsed.is_transient();
      if (!retries || attempt == 9) throw stores.failure(arguments[2], sent, answer, next.attempted);
      env.sleep(next.pause_seconds);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
