// Shards, lines, token files and lists from web servers and object stores: https://, http://, s3:// and gs://.
//
//   #include <millrace/adapt/remote.hpp>                       // link with -lcurl -lcrypto
//   auto place = mr::remote();
//   auto flow = mr::shards("s3://photos/train-{000..146}.tar", {.storage = place});
//   ...
//   std::puts(mr::to_text(place.figures()).c_str());
//
// Opt-in: needs libcurl and OpenSSL's libcrypto (libcurl4-openssl-dev, libssl-dev).
// Reads ahead of the sources in large ranges, over connections that stay. An answer that breaks off is continued from
// its last byte. A request that fails is sent again for a while (remote_options::retry). An object that is replaced
// meanwhile is an error by name, never a mixture of two. Certificates are always verified. Proxies are those of the
// environment.
// With .cache everything is fetched once for all processes and runs of a machine (io/cache/cached.hpp).
// Globs and folders need a store that lists its objects: s3:// and gs://.
// Errors: io_error with the server's words, how often and how long it was tried; setup_error for keys and options.
// Threads: any. One thread of its own moves the bytes; it starts with the first name that is opened.
// Lifetime: files keep alive what they need.
#pragma once

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <millrace/adapt/remote/transfer/remote_figures.hpp>
#include <millrace/adapt/remote/transfer/remote_options.hpp>
#include <millrace/io/file/storage.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {
class cached_storage;
class remote_interface;
}  // namespace detail

/// A storage that is far away.
class remote_storage : public storage {
 public:
  /// Returns what it has done so far.
  remote_figures figures() const;
  /// Returns what its cache has done so far.
  millrace::cache_figures cache_figures() const;

 private:
  friend remote_storage remote(remote_options options);
  remote_storage(std::shared_ptr<detail::remote_interface> place, std::shared_ptr<detail::cached_storage> kept);

  std::shared_ptr<detail::remote_interface> place_;
  std::shared_ptr<detail::cached_storage> kept_;   // null: there is no cache
};

/// Returns the storage of all names that begin with http://, https://, s3:// or gs://. Connects to nothing yet.
remote_storage remote(remote_options options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/impl/remote.inl>
#endif
