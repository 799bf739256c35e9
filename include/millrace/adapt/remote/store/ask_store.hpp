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
small_answer ask_store(object_access& access, const surroundings& around, const store_question& question);

}}}  // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/ask_store.inl>
#endif
