// Shards, lines, token files and lists from web servers and object stores: https://, http://, s3:// and gs://.
//
//   #include <millrace/adapt/remote.hpp>                       // link with -lcurl -lcrypto
//   auto place = mr::remote();
//   auto flow = mr::indexed_shards("s3://photos/train-{000..146}.tar", {.storage = place});
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
#include <millrace/base/version.hpp>
#include <millrace/adapt/remote/remote_file.hpp>
#include <millrace/io/cache/cached_storage.hpp>
#include <millrace/io/file/storage.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Throws setup_error if an option is out of its range.
inline void check_options(const remote_options& o) {
  const auto expect = [](bool good, const char* what) {
    if (!good)
      throw setup_error(std::string("remote_options: ") + what, "Leave it out for the default", {.stage = "remote"});
  };
  expect(o.requests >= 1 && o.requests <= 4096, "requests is out of range (expected: 1 to 4096)");
  expect(o.part_bytes >= (std::size_t{64} << 10) && o.part_bytes <= (std::size_t{1} << 30),
         "part_bytes is out of range (expected: 64 KiB to 1 GiB)");
  expect(o.memory_bytes >= o.part_bytes, "memory_bytes is less than part_bytes");
  expect(o.connect_seconds > 0 && o.stall_seconds > 0, "a time limit is not above 0 s");
  expect(o.retry.attempts >= 1 && o.retry.seconds >= 0 && o.retry.first_pause_seconds >= 0 &&
             o.retry.longest_pause_seconds >= 0, "retry has a value below its least");
  expect(o.hedge.share >= 0 && o.hedge.share <= 0.5 && o.hedge.least_seconds >= 0,
         "hedge is out of range (expected: a share of 0 to 0.5)");
}

/// All that is far away.
class remote_interface final : public storage_interface {
 public:
  explicit remote_interface(remote_options o) : options_(std::move(o)) {}

  /// Asks for the front of an object. One that was found before is opened without a request, as what it was then.
  std::unique_ptr<stored_file> open(const std::string& name) override {
    auto at = place();
    if (auto known = at->found.get(name)) return std::make_unique<remote_file>(std::move(at), std::move(known));
    return remote_file::open(std::move(at), name);
  }
  std::unique_ptr<stored_file> open_front(const std::string& name, std::size_t front_bytes) override {
    auto at = place();
    const std::size_t most = std::max(options_.part_bytes, remote_file::usual_front_bytes);
    return remote_file::open(std::move(at), name, std::clamp(front_bytes, std::size_t{1}, most));
  }
  void assume(const std::string& name, const file_identity& identity) override {
    place()->found.put(name, std::make_shared<remote_object>(
                                 remote_object{.name = name, .identity = identity, .is_assumed = true}));
  }
  std::optional<file_identity> find(const std::string& name) override {
    const auto at = place();
    if (const auto known = at->found.get(name); known && known->is_assumed) return known->identity;
    const auto object = remote_file::find(*at, name);
    at->found.put(name, object);
    return object ? object->identity : std::nullopt;
  }
  std::vector<std::string> list(const std::string& prefix) override { return place()->engine.list(prefix); }

  remote_figures figures() const {
    const std::lock_guard lock(mutex_);
    if (!place_) return {};
    remote_figures f = place_->engine.figures();
    const auto memory = place_->memory.now();
    f.held_bytes = memory.held_bytes;
    f.max_held_bytes = memory.max_bytes;
    return f;
  }

 private:
  std::shared_ptr<remote_place> place() {
    const std::lock_guard lock(mutex_);
    if (!place_) place_ = std::make_shared<remote_place>(options_);
    return place_;
  }

  const remote_options options_;
  mutable std::mutex mutex_;
  std::shared_ptr<remote_place> place_;
};

}  // namespace detail

/// A storage that is far away.
class remote_storage : public storage {
 public:
  /// Returns what it has done so far.
  remote_figures figures() const { return place_->figures(); }
  /// Returns what its cache has done so far.
  millrace::cache_figures cache_figures() const { return kept_ ? kept_->figures() : millrace::cache_figures(); }

 private:
  friend remote_storage remote(remote_options options);
  remote_storage(std::shared_ptr<detail::remote_interface> place, std::shared_ptr<detail::cached_storage> kept)
      : storage(kept ? std::shared_ptr<storage_interface>(kept) : place), place_(std::move(place)),
        kept_(std::move(kept)) {}

  std::shared_ptr<detail::remote_interface> place_;
  std::shared_ptr<detail::cached_storage> kept_;   // null: there is no cache
};

/// Returns the storage of all names that begin with http://, https://, s3:// or gs://. Connects to nothing yet.
inline remote_storage remote(remote_options options = {}) {
  detail::check_options(options);
  const cache_options cache = options.cache;
  auto place = std::make_shared<detail::remote_interface>(std::move(options));
  auto kept = cache.folder.empty() ? nullptr : std::make_shared<detail::cached_storage>(place, cache);
  return {std::move(place), std::move(kept)};
}

inline std::string to_text(const remote_figures& f) {
  char text[600];
  std::snprintf(text, sizeof text,
                "remote: %.3f GB by %llu requests over %llu connections, %zu in flight; first byte after %.0f ms, then "
                "%.0f MB/s each; %.0f MB held, at most %.0f\n"
                "  sent again: %llu (not connected %llu, broken off %llu, stalled %llu, busy %llu, wrong answers %llu, "
                "keys renewed %llu); redirects %llu; hedged %llu, of which %llu won; given up %llu",
                1e-9 * static_cast<double>(f.bytes), static_cast<unsigned long long>(f.requests),
                static_cast<unsigned long long>(f.connections), f.in_flight, 1e3 * f.first_byte_seconds,
                1e-6 * f.bytes_per_second_each, 1e-6 * static_cast<double>(f.held_bytes),
                1e-6 * static_cast<double>(f.max_held_bytes), static_cast<unsigned long long>(f.retries),
                static_cast<unsigned long long>(f.not_connected), static_cast<unsigned long long>(f.broken_off),
                static_cast<unsigned long long>(f.stalled), static_cast<unsigned long long>(f.busy),
                static_cast<unsigned long long>(f.wrong_answers), static_cast<unsigned long long>(f.keys_renewed),
                static_cast<unsigned long long>(f.redirects), static_cast<unsigned long long>(f.hedges),
                static_cast<unsigned long long>(f.hedges_won), static_cast<unsigned long long>(f.failures));
  return text;
}

}}  // namespace millrace
