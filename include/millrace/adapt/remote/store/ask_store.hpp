// Asks a store for what fits into memory, until it answers or refuses for good.
//
//   const auto answer = mr::detail::ask_store(access, around, {.object = parse_object_url("s3://bucket/a.json")});
//   if (answer.status == 404) ...                   // there is none; all other refusals are errors
//
// Asks again, with longer and longer pauses, where the store is busy, and while keys are looked for (key_provider.hpp).
// Asks again at once where a bucket is in another region, and where other keys were found. Each attempt is signed anew.
// Errors: located io_error for a store that refuses. Threads: any.
#pragma once

#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/surroundings.hpp>

#include <string>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A question to a store.
struct store_question {
  std::string method = "GET";
  object_url object{};
  std::string query{};     ///< encoded
  header_list headers{};   ///< beside those that are signed
  std::string name{};      ///< for errors; empty: the object's own
};

/// Returns an answer of status 200 or 206, or one that says that the object is not there.
inline small_answer ask_store(object_access& access, const surroundings& around, const store_question& question) {
  constexpr int max_attempts = 8, max_healings = 16;
  double pause = 0.1;
  for (int attempt = 1, healings = 0;; ++attempt) {
    addressed_request sent;
    try {
      sent = access.address(question.method, question.object, question.query);
    } catch (const keys_pending& e) {
      around.sleep(e.pause_seconds);
      --attempt;
      continue;
    }
    small_request request{.method = question.method, .url = sent.url, .headers = sent.headers, .seconds = 60};
    request.headers.insert(request.headers.end(), question.headers.begin(), question.headers.end());
    small_answer answer = around.fetch(request);
    store_answer said;
    if (answer.status != 200 && answer.status != 206) said = read_store_answer(answer);
    if (said.status == 0 || said.is_missing_object()) {
      access.accepted(sent);
      return answer;
    }
    remedy next = access.heal(question.object, sent, said);
    if (next.what == remedy::kind::at_once && ++healings > max_healings) next.what = remedy::kind::none;
    if (next.what != remedy::kind::none) {
      if (next.what == remedy::kind::later) around.sleep(next.pause_seconds);
      --attempt;
      continue;
    }
    said.tried = next.tried;
    if (attempt >= max_attempts || !said.is_transient())
      throw said.failure(question.name.empty() ? question.object.name_of(question.object.key) : question.name,
                         sent.origin, access.now_seconds());
    around.sleep(pause);
    pause *= 2;
  }
}

}}}  // namespace millrace::detail
