// The shards on which a storage gave up during a read: to ask again for each sample would take as long each time.
//
//   mr::detail::given_up_shards lost;
//   try { open(shard); } catch (const mr::error&) { lost.note(shard); }     // notes an io_error, and no other
//   if (const std::exception_ptr why = lost.of(shard)) return fail(why);
//
// Errors: std::bad_alloc. Threads: one at a time. Lifetime: a value.
#pragma once

#include <millrace/base/error.hpp>

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns whether an error is that of a system or a storage, not of data.
inline bool is_io_error(const std::exception_ptr& failure) noexcept {
  if (!failure) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const io_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Shards and their errors.
class given_up_shards {
 public:
  /// Notes the error that is being handled, if it is an io_error.
  void note(std::size_t shard) {
    if (is_io_error(std::current_exception())) all_.emplace_back(shard, std::current_exception());
  }
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
