// Definitions for remote.hpp.
#pragma once

#include <millrace/adapt/remote.hpp>

#include <millrace/adapt/remote/remote_file.hpp>
#include <millrace/io/cache/cached_storage.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail {

/// Throws setup_error if an option is out of its range.
MILLRACE_INLINE void check_options(const remote_options& o) {
  const auto expect = [](bool good, const char* what) {
    if (!good)
      throw setup_error(std::string("remote_options: ") + what, "Omit the option to use its default",
                        {.stage = "remote"});
  };
  expect(o.requests >= 1 && o.requests <= 4096, "requests is out of range: expected 1 to 4096");
  expect(o.part_bytes >= (std::size_t{64} << 10) && o.part_bytes <= (std::size_t{1} << 30),
         "part_bytes is out of range: expected 64 KiB to 1 GiB");
  expect(o.memory_bytes >= o.part_bytes, "memory_bytes is too small: expected at least part_bytes");
  expect(o.connect_limit.count() > 0 && o.stall_limit.count() > 0,
         "connect_limit or stall_limit is not positive: expected more than 0 s");
  expect(o.bytes_per_second != std::uint64_t{0} && o.requests_per_second != std::uint64_t{0},
         "bytes_per_second or requests_per_second is 0: expected at least 1");
  expect(o.retry.attempts >= 1 && o.retry.limit.count() >= 0 && o.retry.first_pause.count() >= 0 &&
             o.retry.longest_pause.count() >= 0,
         "retry is out of range: expected at least one attempt, and no negative time");
  expect(o.hedge.share >= 0 && o.hedge.share <= 0.5 && o.hedge.least_wait.count() >= 0,
         "hedge is out of range: expected a share of 0 to 0.5");
}

/// The storage of all remote names.
class remote_interface final : public storage_interface {
 public:
  explicit remote_interface(remote_options o) : options_(std::move(o)) {}

  /// Requests the front of an object. If the object was opened before, opens the same version of it without a request.
  std::unique_ptr<stored_file> open(const std::string& name) override {
    auto at = context();
    if (auto object = at->objects.get(name)) return std::make_unique<remote_file>(std::move(at), std::move(object));
    return remote_file::open(std::move(at), name);
  }
  std::unique_ptr<stored_file> open_front(const std::string& name, std::size_t front_bytes) override {
    auto at = context();
    const std::size_t most = std::max(options_.part_bytes, remote_file::usual_front_bytes);
    return remote_file::open(std::move(at), name, std::clamp(front_bytes, std::size_t{1}, most));
  }
  void assume(const std::string& name, const file_identity& identity) override {
    context()->objects.put(name, std::make_shared<transfer_object>(
                                     transfer_object{.name = name, .identity = identity, .is_assumed = true}));
  }
  std::optional<file_identity> find(const std::string& name) override {
    const auto at = context();
    if (const auto assumed = at->objects.get(name); assumed && assumed->is_assumed) return assumed->identity;
    const auto object = remote_file::find(*at, name);
    at->objects.put(name, object);
    return object ? object->identity : std::nullopt;
  }
  std::vector<std::string> list(const std::string& prefix) override { return context()->engine.list(prefix); }
  std::size_t request_bytes() const override { return options_.part_bytes; }

  remote_statistics statistics() const {
    const std::lock_guard lock(mutex_);
    if (!context_) return {};
    remote_statistics f = context_->engine.statistics();
    const auto memory = context_->memory.now();
    f.held_bytes = memory.held_bytes;
    f.max_held_bytes = memory.max_bytes;
    return f;
  }

 private:
  std::shared_ptr<remote_context> context() {
    const std::lock_guard lock(mutex_);
    if (!context_) context_ = std::make_shared<remote_context>(options_);
    return context_;
  }

  const remote_options options_;
  mutable std::mutex mutex_;
  std::shared_ptr<remote_context> context_;
};

}   // namespace detail

MILLRACE_INLINE remote_storage::remote_storage(std::shared_ptr<detail::remote_interface> remote,
                                               std::shared_ptr<detail::cached_storage> cached)
    : storage(cached ? std::shared_ptr<storage_interface>(cached) : remote),
      remote_(std::move(remote)),
      cached_(std::move(cached)) {}

MILLRACE_INLINE remote_statistics remote_storage::statistics() const { return remote_->statistics(); }

MILLRACE_INLINE cache_statistics remote_storage::cache_statistics() const {
  return cached_ ? cached_->statistics() : millrace::cache_statistics();
}

MILLRACE_INLINE remote_storage remote(remote_options options) {
  detail::check_options(options);
  const cache_options cache = options.cache;
  auto remote = std::make_shared<detail::remote_interface>(std::move(options));
  auto cached = cache.folder.empty() ? nullptr : std::make_shared<detail::cached_storage>(remote, cache);
  return {std::move(remote), std::move(cached)};
}

}}   // namespace millrace
