// Definitions for damage_rule.hpp.
#pragma once

#include <millrace/work/batch/damage_rule.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool damage_rule::accepts(const std::exception_ptr& located) const noexcept {
  if (!tolerates_damage()) return false;
  try {
    std::rethrow_exception(located);
  } catch (const data_error&) {
    return true;
  } catch (const error& e) {
    return std::find(stages.begin(), stages.end(), e.where().stage) != stages.end();
  } catch (...) {
    return false;
  }
}

MILLRACE_RARE void damage_rule::add_early(std::uint64_t& count, const std::exception_ptr& located,
                                          bool epoch_is_over) const {
  try {
    std::rethrow_exception(located);
  } catch (const lost_shard_error& e) {
    if (epoch_is_over)
      throw data_error(
          "no sample of an epoch is valid, so the shapes of its batches are unknown; the last error: " + e.message(),
          e.hint(), e.where());
  } catch (const error& e) {
    if (++count > in_a_row)
      throw data_error(
          "the first " + std::to_string(count) +
              " samples are damaged, more than damage_options::in_a_row allows; the last error: " + e.message(),
          "Inspect the data, or raise damage_options::in_a_row", e.where());
  }
}

}}}   // namespace millrace::detail
