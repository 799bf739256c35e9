// Defines what damage_rule.hpp declares.
#pragma once

#include <millrace/work/damage_rule.hpp>

#include <millrace/base/error.hpp>

#include <algorithm>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE bool damage_rule::takes(const std::exception_ptr& located) const noexcept {
  if (!goes_on()) return false;
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

}}}  // namespace millrace::detail
