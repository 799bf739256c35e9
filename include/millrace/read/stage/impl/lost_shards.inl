// Definitions for lost_shards.hpp.
#pragma once

#include <millrace/read/stage/lost_shards.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::exception_ptr lost_shards::accept(std::exception_ptr why) {
  if (!is_damage_of_source(why)) return why;
  const std::lock_guard lock(mutex_);
  ++count_;
  if (count_ <= max_shown) {
    try {
      std::rethrow_exception(why);
    } catch (const error& e) {
      first_ += std::string("\n  ") + e.what();
    }
  }
  if (count_ > at_most_) return exception_of(too_many(count_, at_most_, first_));
  new_.push_back(std::move(why));
  return nullptr;
}

MILLRACE_RARE data_error lost_shards::too_many(std::uint64_t count, std::uint64_t at_most, const std::string& first) {
  return {std::to_string(count) + " shards are damaged, but on_damage allows at most " + std::to_string(at_most) +
              ". The first ones are:" + first,
          "Copy the shards again, or raise damage_options::shards_at_most"};
}

MILLRACE_RARE std::uint64_t lost_shards::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

MILLRACE_RARE std::vector<std::exception_ptr> lost_shards::take_new() {
  const std::lock_guard lock(mutex_);
  return std::exchange(new_, {});
}

MILLRACE_RARE bool is_damage_of_source(const std::exception_ptr& why) noexcept {
  try {
    std::rethrow_exception(why);
  } catch (const data_error&) {
    return true;
  } catch (const io_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}}}   // namespace millrace::detail
