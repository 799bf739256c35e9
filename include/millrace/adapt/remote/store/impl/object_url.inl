// Defines what object_url.hpp declares.
#pragma once

#include <millrace/adapt/remote/store/object_url.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE object_url parse_object_url(std::string_view name) {
  object_url url{.kind = name.starts_with("gs://") ? object_store_kind::gs : object_store_kind::s3};
  const std::string_view rest = name.substr(5);
  const std::size_t slash = rest.find('/');
  url.bucket = rest.substr(0, slash);
  if (slash != std::string_view::npos) url.key = rest.substr(slash + 1);
  // Buckets of the first years have capitals and underscores, and up to 255 characters.
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
