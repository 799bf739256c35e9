// Builds requests for objects with names s3://... and gs://... .
//
//   mr::detail::object_stores stores({.s3 = {.region = "eu-west-1"}}, env);
//   auto sent = stores.address("GET", "s3://photos/a.tar");   // call it before each attempt; returns URL and headers
//   const auto next = stores.handle_refusal("s3://photos/a.tar", sent, answer);   // whether and when to retry
//   for (const std::string& name : stores.list("s3://photos/2026/")) use(name);
//
// Errors: the errors of object_access and list_objects(). Threads: any thread. Lifetime: the constructor copies `env`.
#pragma once

#include <millrace/adapt/remote/store/gs_access.hpp>
#include <millrace/adapt/remote/store/object_access.hpp>
#include <millrace/adapt/remote/store/s3_access.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Lists the objects of a bucket that have a key with a given prefix. The store sends the list in pages.
//
// Keys that end in a slash are omitted, because they represent folders.
// Errors: io_error, with the name of the prefix as its location, if the store refuses a request. data_error if a
// response is invalid, or if the server repeats a continuation token. Also data_error for a listing with more than
// 10,000,000 names or 100,000 pages. Threads: any thread.
// Source: "ListObjectsV2" of the Amazon S3 API Reference.

/// Lists the objects in the bucket of `prefix` whose keys begin with prefix.key. Returns their names, such as
/// "s3://bucket/key", in sorted order.
std::vector<std::string> list_objects(object_access& access, const key_environment& env, const object_url& prefix);

/// Builds requests to S3 and Google Cloud Storage. The name of the object selects the store.
class object_stores {
 public:
  struct options {
    s3_options s3{};
    gs_options gs{};
    credential_search_options search_options{};
  };

  object_stores(options choices, key_environment env)
      : env_(std::move(env)),
        s3_(std::move(choices.s3), env_, choices.search_options),
        gs_(std::move(choices.gs), env_, choices.search_options) {}

  /// Returns URL and headers of a request. Requires a name for which is_object_url() is true.
  addressed_request address(std::string_view method, std::string_view name) {
    const object_url object = parse_object_url(name);
    if (object.key.empty())
      throw setup_error("a URL has no object key: got " + printable(name) + ", expected BUCKET/KEY after " +
                            std::string(name.substr(0, 5)),
                        "Add the key of an object", {.stage = "remote", .shard = std::string(name)});
    return of(object).address(method, object, {});
  }

  /// Records that a request succeeded.
  void accepted(std::string_view name, const addressed_request& sent) { of(parse_object_url(name)).accepted(sent); }

  /// Handles a refusal. Returns whether and when a new request may succeed.
  remedy handle_refusal(std::string_view name, const addressed_request& sent, const small_answer& answer) {
    const object_url object = parse_object_url(name);
    return of(object).handle_refusal(object, sent, read_store_answer(answer));
  }
  /// Returns the error for a refused request. `attempted` is remedy::attempted from the result of handle_refusal(). The
  /// message ends with this text.
  io_error failure(std::string_view name, const addressed_request& sent, const small_answer& answer,
                   const std::string& attempted = {}) const {
    store_answer error = read_store_answer(answer);
    error.attempted = attempted;
    return error.failure(std::string(name), sent.origin, env_.now_seconds());
  }
  /// Returns the names that begin with `prefix`, sorted.
  std::vector<std::string> list(std::string_view prefix) {
    const object_url object = parse_object_url(prefix);
    return list_objects(of(object), env_, object);
  }

 private:
  object_access& of(const object_url& object) noexcept {
    if (object.kind == object_store_kind::gs) return gs_;
    return s3_;
  }

  const key_environment env_;
  s3_access s3_;
  gs_access gs_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/remote/store/impl/object_stores.inl>
#endif
