// The interface of the last segment for the session, independent of the types of its maps and columns.
//
//   if (last.make_early(0)) std::puts(last.describe().c_str());      // the shapes are known
//   last.open_slots();                                               // and the slots are allocated
//
// The only implementation is batch_segment. Errors: make_early() throws the errors of samples. Threads: see
// work/batch/batch_segment.hpp.
#pragma once

#include <millrace/work/schedule/dispatcher.hpp>
#include <millrace/work/schedule/segment.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The interface of the last segment for the session.
class final_segment : public space_listener {
 public:
  /// Creates the item of the next position, counted from 0, before slots exist. Returns true if the position has an
  /// item. This item defines all shapes, and the workers create the following items.
  virtual bool make_early(std::uint64_t position) = 0;
  /// Returns the error of the first damaged sample in make_early(); null if no sample was damaged.
  virtual std::exception_ptr early_damage() const noexcept = 0;
  /// Assigns free slots to the next batches.
  virtual void open_slots() = 0;
  /// Returns the size of a batch in bytes. Requires that the shapes are known.
  virtual std::size_t batch_bytes() const = 0;
  /// Returns a text with the shapes and types of the columns. Requires that the shapes are known.
  virtual std::string describe() const = 0;
  /// Returns the dispatcher of the segment.
  virtual dispatcher& tickets() noexcept = 0;
};

}}}  // namespace millrace::detail
