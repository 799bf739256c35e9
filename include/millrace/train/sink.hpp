// Where rows of a log go: a terminal, a file, or whatever a user makes of it.
//
//   struct to_database final : mr::sink {
//     const char* name() const noexcept override { return "database"; }
//     void write(const mr::row& r) override { connection.insert(r.step, r.values); }
//   };
//   mr::log out(mr::status_line{}, to_database{});
//
// Threads: the log calls a sink from its one writer thread only, so a sink needs no lock and may take its time. Errors:
// whatever a sink throws is counted and reported once; the sink is asked again with the next row.
#pragma once

#include <millrace/train/instant.hpp>
#include <millrace/train/row.hpp>

namespace millrace { inline namespace MILLRACE_ABI {

class sink {
 public:
  sink() = default;
  sink(sink&&) = default;
  sink& operator=(sink&&) = default;
  virtual ~sink() = default;

  virtual const char* name() const noexcept = 0;
  virtual void write(const row& r) = 0;
  virtual void tick(instant) {}   ///< ten times a second or more often: time to redraw, to flush
  virtual void close() {}         ///< after the last row
};

}}  // namespace millrace
