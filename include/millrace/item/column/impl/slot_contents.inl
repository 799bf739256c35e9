// Definitions for slot_contents.hpp.
#pragma once

#include <millrace/item/column/slot_contents.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE batch_keys::batch_keys(std::size_t rows) : keys_(rows), texts_(rows) {}

MILLRACE_INLINE void batch_keys::copy(std::size_t from, std::size_t to) { set(to, texts_[from]); }

MILLRACE_INLINE void batch_keys::swap(batch_keys& other) noexcept {
  keys_.swap(other.keys_);
  texts_.swap(other.texts_);
}

}}}   // namespace millrace::detail
