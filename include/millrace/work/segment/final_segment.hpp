// The last segment of a session, as the session sees it: whatever the types of its maps and columns.
//
//   if (last.make_early(0)) std::puts(last.describe().c_str());      // the shapes are known
//   last.open_slots();                                               // and the slots are allocated
//
// work/batch/batch_segment.hpp is the one implementation. Errors: those of the first samples. Threads: as told there.
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
  /// Makes the item of the next position, counted from 0, while there are no slots. Returns whether there is one: it
  /// fixes all shapes, and the workers make the items behind it.
  virtual bool make_early(std::uint64_t position) = 0;
  /// Returns the error of the first damaged sample that make_early() met, or null.
  virtual std::exception_ptr early_damage() const noexcept = 0;
  /// Assigns free slots to the next batches.
  virtual void open_slots() = 0;
  /// Returns the bytes of a batch, once the shapes are fixed.
  virtual std::size_t batch_bytes() const = 0;
  /// Returns the shapes and types of the columns, once the shapes are fixed.
  virtual std::string describe() const = 0;
  /// Returns the dispatcher of the segment.
  virtual dispatcher& tickets() noexcept = 0;
};

}}}  // namespace millrace::detail
