// Reads shards, lines, token files and lists of keys from web servers and object stores: https://, http://, s3:// and
// gs://.
//
//   #include <millrace/adapt/remote.hpp>                       // link with -lcurl -lcrypto
//   auto storage = mr::remote();
//   auto flow = mr::shards("s3://photos/train-{000..146}.tar", {.storage = storage});
//   ...
//   std::puts(mr::to_text(storage.statistics()).c_str());
//
// Opt-in: needs libcurl and OpenSSL's libcrypto (libcurl4-openssl-dev, libssl-dev).
// The storage prefetches large ranges over persistent connections. If a response is interrupted, the next request
// continues at the first missing byte. Failed requests are retried (remote_options::retry). If an object is replaced
// during the run, reads throw an error with the name of the object. Therefore bytes of two versions are never mixed.
// Certificates are always verified. The proxy settings of the environment are used.
// With .cache, all processes and runs of a machine fetch each object only once (io/cache/cached.hpp).
// Globs and folders require a store that can list its objects: s3:// or gs://.
// Errors: io_error with the server's message, the number of attempts and the elapsed time; setup_error for missing
// credentials and invalid options.
// Threads: any thread. A separate thread transfers the bytes. This thread starts at the first operation that needs a
// server: when a file is opened, when its size is requested, or when files are listed.
// Lifetime: an open file keeps the state of the storage alive.
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
}   // namespace detail

/// A storage on web servers and object stores.
class remote_storage : public storage {
 public:
  /// Returns the statistics of the requests.
  remote_statistics statistics() const;
  /// Returns the statistics of the cache.
  millrace::cache_statistics cache_statistics() const;

 private:
  friend remote_storage remote(remote_options options);
  remote_storage(std::shared_ptr<detail::remote_interface> remote, std::shared_ptr<detail::cached_storage> cached);

  std::shared_ptr<detail::remote_interface> remote_;
  std::shared_ptr<detail::cached_storage> cached_;   // null if the storage has no cache
};

/// Returns a storage for names that begin with http://, https://, s3:// or gs://. Does not connect to a server.
remote_storage remote(remote_options options = {});

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/adapt/impl/remote.inl>
#endif
