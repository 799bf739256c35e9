// Definitions for scratch.hpp.
#pragma once

#include <millrace/item/scratch.hpp>

#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

MILLRACE_INLINE scratch::scratch(scratch&& other) noexcept
    : tools_(std::exchange(other.tools_, {})), counts_(other.counts_) {}

MILLRACE_INLINE scratch::~scratch() {
  for (const tool& t : tools_) t.destroy(t.object);
}

MILLRACE_INLINE void* scratch::add(const tool& t) {
  try {
    tools_.push_back(t);
  } catch (...) {
    t.destroy(t.object);
    throw;
  }
  return t.object;
}

}}   // namespace millrace
