// Shards, lines, token files and lists from web servers and object stores: https://, http://, s3:// and gs://.
//
//   #include <millrace/adapt/remote.hpp>                       // link with -lcurl -lcrypto
//   auto storage = mr::remote();
//   auto flow = mr::shards("s3://photos/train-{000..146}.tar", {.storage = storage});
//   ...
//   std::puts(mr::to_text(storage.statistics()).c_str());
//
// Opt-in: needs libcurl and OpenSSL's libcrypto (libcurl4-openssl-dev, libssl-dev).
// Fetches large ranges ahead of the sources, over persistent connections. A response that breaks off is resumed at its
// last byte. A failed request is retried (remote_options::retry). If an object is replaced during the run, the error
// names it; bytes of two versions are never mixed. Certificates are always verified. Proxies are those of the
// environment.
// With .cache all processes and runs of a machine fetch each object once (io/cache/cached.hpp).
// Globs and folders need a store that lists its objects: s3:// and gs://.
// Errors: io_error with the server's message, the number of attempts and the time; setup_error for keys and options.
// Threads: any. A dedicated thread moves the bytes; it starts when the first name is opened.
// Lifetime: files keep their dependencies alive.
#pragma once

#if !__has_include(<curl/curl.h>)
#error "millrace: libcurl is not installed: apt-get install libcurl4-openssl-dev"
#endif
#include <millrace/adapt/remote/transfer/remote_statistics.hpp>
#include <millrace/adapt/remote/transfer/remote_options.hpp>
#include <millrace/io/file/storage.hpp>

#include <memory>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {
class cached_storage;
class remote_interface;
}  // namespace detail

/// A storage on web servers and object stores.
class remote_storage : public storage {
 public:
  /// Returns the statistics of its requests.
  remote_statistics statistics() const;
  /// Returns the statistics of its cache.
  millrace::cache_statistics cache_statistics() const;

 private:
  friend remote_storage remote(remote_options options);
  remote_storage(std::shared_ptr<detail::remote_interface> remote, std::shared_ptr<detail::cached_storage> cached);

  std::shared_ptr<detail::remote_interface> remote_;
  std::shared_ptr<detail::cached_storage> cached_;   // null: there is no cache
};

/// Returns the storage of all names that begin with http://, https://, s3:// or gs://. Does not connect yet.
remote_storage remote(remote_options options = {});

}}  // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/impl/remote.inl>
#endif
