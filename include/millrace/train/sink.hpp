// The destination of the rows of a log: a terminal, a file, or your own class.
//
//   struct to_database final : mr::sink {
//     const char* name() const noexcept override { return "database"; }
//     void write(const mr::row& r) override { connection.insert(r.step, r.values); }
//   };
//   mr::log out(mr::status_line{}, to_database{});
//
// Errors: the log counts every exception of a sink and reports the first; the sink still receives the next row.
// Threads: the log calls its sinks only from its writer thread. Therefore a sink needs no lock and may be slow.
#pragma once

#include <millrace/base/version.hpp>
#include <millrace/train/instant.hpp>
#include <millrace/train/row.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

/// Receives the rows of a log, one at a time.
class sink {
 public:
  sink() = default;
  sink(sink&&) = default;
  sink& operator=(sink&&) = default;
  virtual ~sink() = default;

  /// Returns the name of the sink for error messages.
  virtual const char* name() const noexcept = 0;
  /// Writes one row.
  virtual void write(const row& r) = 0;
  virtual void tick(instant) {}   ///< called ten times a second or more often, to redraw or to sync
  virtual void close() {}         ///< called after the last row
};

}}  // namespace millrace
