// scratch: reusable working memory that one worker uses at a time, for decoders, row buffers and tables.
//
//   void render(std::span<std::uint8_t> row, mr::scratch& s) const {
//     auto& decoder = s.get<my_decoder>();          // created at first use, reused for each sample
//     decoder.decode(frame, row);
//     if (decoder.repaired()) s.count("repaired frames");   // shown by run.stats().counts
//   }
//
// Threads: one worker at a time uses a scratch; another worker may use it later. If a function runs a nested
// parallel loop of TBB, its thread may run another task meanwhile, which changes the content of the scratch. After such
// a loop, do not expect the earlier content.
// Results must not depend on the content that earlier samples left in a scratch.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/measure/values/event_counts.hpp>

#include <cstdint>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI {

/// Working memory: at most one object of each type.
class scratch {
 public:
  scratch() = default;
  scratch(scratch&& other) noexcept;
  scratch& operator=(scratch&&) = delete;
  ~scratch();

  /// Returns the T of this scratch, default-constructed on first use.
  template <class T>
  T& get() {
    for (const auto& t : tools_)
      if (t.type == &type_mark<T>) return *static_cast<T*>(t.object);
    return *static_cast<T*>(add({&type_mark<T>, new T(), [](void* object) { delete static_cast<T*>(object); }}));
  }

  /// Adds `times` to the count of the event whose name is `event`, a string literal.
  void count(const char* event, std::uint64_t times = 1) noexcept {
    if (counts_ && times > 0) counts_->count(event, times);
  }
  /// Sets the counters that count() increases. Without this call, nothing is counted.
  void count_into(event_counts& counts) noexcept { counts_ = &counts; }

 private:
  struct tool {
    const void* type;
    void* object;
    void (*destroy)(void*);
  };
  template <class T>
  static constexpr char type_mark = 0;

  /// Stores the tool and returns its object.
  void* add(const tool& t);

  std::vector<tool> tools_;
  event_counts* counts_ = nullptr;
};

namespace detail {

/// Renders a plan, such as a mr::picture, immediately into a new tensor of this shape. Uses a temporary scratch.
template <class Tensor, class Plan, class Shape>
Tensor rendered(const Plan& plan, const Shape& shape) {
  scratch own;
  Tensor values(shape);
  plan.render(values.span(), own);
  return values;
}

}   // namespace detail

}}   // namespace millrace

#ifndef MILLRACE_COMPILED
#include <millrace/item/impl/scratch.inl>
#endif
