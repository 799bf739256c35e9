// Defines what object_stores.hpp declares.
#pragma once

#include <millrace/adapt/remote/store/object_stores.hpp>

#include <millrace/adapt/remote/store/object_listing.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE addressed_request object_stores::address(std::string_view method, std::string_view name) {
  const object_url object = parse_object_url(name);
  if (object.key.empty())
    throw setup_error("a name has no key: got " + printable(name) + ", expected BUCKET/KEY behind " +
                          std::string(name.substr(0, 5)),
                      "Name an object", {.stage = "remote", .shard = std::string(name)});
  return of(object).address(method, object, {});
}

MILLRACE_INLINE remedy object_stores::heal(std::string_view name, const addressed_request& sent,
                                           const small_answer& answer) {
  const object_url object = parse_object_url(name);
  return of(object).heal(object, sent, read_store_answer(answer));
}

MILLRACE_INLINE io_error object_stores::failure(std::string_view name, const addressed_request& sent,
                                                const small_answer& answer, const std::string& tried) const {
  store_answer said = read_store_answer(answer);
  said.tried = tried;
  return said.failure(std::string(name), sent.origin, around_.now_seconds());
}

MILLRACE_INLINE std::vector<std::string> object_stores::list(std::string_view prefix) {
  const object_url object = parse_object_url(prefix);
  return list_objects(of(object), around_, object);
}

MILLRACE_INLINE object_access& object_stores::of(const object_url& object) noexcept {
  if (object.kind == object_store_kind::gs) return gs_;
  return s3_;
}

}}}  // namespace millrace::detail
