// The shards on which a storage gave up during a read: to ask again for each sample would take as long each time.
//
//   mr::detail::given_up_shards lost;
//   try { open(shard); } catch (const mr::io_error&) { lost.note(shard, std::current_exception()); }
//   if (const std::exception_ptr why = lost.of(shard)) return fail(why);
//
// Errors: std::bad_alloc. Threads: one at a time. Lifetime: a value.
#pragma once

#include <millrace/base/version.hpp>

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Shards and their errors.
class given_up_shards {
 public:
  void note(std::size_t shard, std::exception_ptr why) { all_.emplace_back(shard, std::move(why)); }
  /// Returns the error of a shard; null if there is none.
  std::exception_ptr of(std::size_t shard) const noexcept {
    for (const auto& [number, why] : all_)
      if (number == shard) return why;
    return nullptr;
  }

 private:
  std::vector<std::pair<std::size_t, std::exception_ptr>> all_;
};

}}}  // namespace millrace::detail
