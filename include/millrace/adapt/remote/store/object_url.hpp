// The name of an object in a store: s3://BUCKET/KEY, gs://BUCKET/KEY.
//
//   const auto name = mr::detail::parse_object_url("s3://photos/2026/a b+c.tar");
//   name.bucket;     // "photos"
//   name.key;        // "2026/a b+c.tar"; names are not percent-encoded
//
// Errors: setup_error for an invalid bucket name. Threads: not synchronized.
#pragma once

#include <millrace/base/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

enum class object_store_kind : std::uint8_t { s3, gs };

/// A bucket and a key. If the key is empty, the name is the prefix of all objects of the bucket.
struct object_url {
  object_store_kind kind = object_store_kind::s3;
  std::string bucket{}, key{};

  /// Returns the name of an object in the same bucket.
  std::string name_of(std::string_view other_key) const {
    return (kind == object_store_kind::s3 ? "s3://" : "gs://") + bucket + '/' + std::string(other_key);
  }
};

inline bool is_object_url(std::string_view name) noexcept {
  return name.starts_with("s3://") || name.starts_with("gs://");
}

/// Returns the parts of a name. Requires that is_object_url() is true.
inline object_url parse_object_url(std::string_view name) {
  object_url url{.kind = name.starts_with("gs://") ? object_store_kind::gs : object_store_kind::s3};
  const std::string_view rest = name.substr(5);
  const std::size_t slash = rest.find('/');
  url.bucket = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.key = rest.substr(slash + 1);
  // Old buckets may have capitals and underscores, and up to 255 characters.
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  bool good = url.bucket.size() >= 3 && url.bucket.size() <= 255 && url.bucket[0] != '.' && url.bucket[0] != '-' &&
              url.bucket.find("..") == std::string::npos;
  for (const char c : url.bucket) good = good && allowed(c);
  if (!good)
    throw setup_error("the bucket of " + printable(name) + " is wrong: got " + printable('"' + url.bucket + '"') +
                          ", expected 3 to 255 letters, digits, dots, dashes and underscores",
                      "Write " + std::string(name.substr(0, 5)) + "BUCKET/KEY", {.stage = "remote"});
  return url;
}

}}}  // namespace millrace::detail
