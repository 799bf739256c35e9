// Defines what ask_store.hpp declares.
#pragma once

#include <millrace/adapt/remote/store/ask_store.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE small_answer ask_store(object_access& access, const surroundings& around,
                                       const store_question& question) {
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
