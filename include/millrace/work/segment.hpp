// How the parts of a running flow are joined: who takes samples, who is told of room, who can be stopped.
//
//   source -> [sink] parallel segment -> [sink] serial segment -> [sink] batch segment -> slots
//
// A producer gives samples to the next segment's sink, in order, as long as it has room; when room appears, the sink
// tells its producer. Nothing here waits: what waits does so in a thread of its own (I/O, serial stages, the trainer).
#pragma once

#include <millrace/item/sample.hpp>
#include <millrace/measure/event_counts.hpp>
#include <millrace/measure/flow_figures.hpp>
#include <millrace/measure/timeline.hpp>

#include <cstdint>

namespace millrace { inline namespace MILLRACE_ABI {

/// How many may be at work at the same time: in each stage that the workers run, and reading.
struct concurrency_counts {
  std::size_t workers = 0, reads = 0;
  friend bool operator==(const concurrency_counts&, const concurrency_counts&) = default;
};

/// Told when a sink that was full has room again. Called from any thread; must not wait.
class space_listener {
 public:
  virtual ~space_listener() = default;
  virtual void room_freed() noexcept = 0;
};

/// Takes samples in order from one producer at a time.
template <class T>
class sample_sink {
 public:
  virtual ~sample_sink() = default;

  /// Whether put() may be called once. Also works off what an earlier end still has to write.
  virtual bool has_room() = 0;
  virtual void put(sample<T>&& s) = 0;
  /// The batch ends here, however few rows it has. Only in front of the last segment.
  virtual void end_batch() {}
  /// No more samples of the current epoch.
  virtual void end_epoch() = 0;
  /// No more samples at all; with an error, it takes the place of the next sample.
  virtual void finish(std::exception_ptr error) = 0;
  /// Works off what an earlier end still has to write, as far as there is room; whether that is all.
  virtual bool settle() { return true; }
  /// Makes everything put so far visible to the workers.
  virtual void publish() = 0;
  /// Samples that are visible to the workers and that none has taken yet.
  virtual std::uint64_t backlog() const noexcept = 0;
  /// Bytes of everything put and not yet taken.
  virtual std::size_t held_bytes() const noexcept = 0;
  virtual void set_listener(space_listener* producer) = 0;
  /// The position of the next sample put, where each becomes a row and none was delivered before; else unknown.
  virtual std::uint64_t next_row() const noexcept { return error_location::unknown; }
};

/// Tells a segment how many tickets have their input.
class ticket_gate {
 public:
  virtual ~ticket_gate() = default;
  virtual void set_available(std::uint64_t tickets) = 0;
  virtual std::uint64_t available() const noexcept = 0;
};

/// A part of a session that runs.
class pipeline_node {
 public:
  virtual ~pipeline_node() = default;
  /// Before start(): where to count what is worth knowing.
  virtual void count_into(event_counts&) noexcept {}
  /// Its stages, and whatever else it knows, as they are by then. Any thread, after start().
  virtual void add_to(flow_figures&, std::uint64_t now_ns) const { static_cast<void>(now_ns); }
  /// A line on who works and who waits for what, for when a run stands still. Any thread, after start().
  virtual std::string waits(std::uint64_t now_ns) const { return static_cast<void>(now_ns), std::string(); }
  /// The last that its threads did. Any thread, after start().
  virtual void add_to(timeline&, std::uint64_t start_ns) const { static_cast<void>(start_ns); }
  /// Opens and closes seats of the workers or of readers, whichever it has. Any thread, after start().
  virtual void open_seats(const concurrency_counts&) {}
  /// Starts its threads, if it has any.
  virtual void start() = 0;
  /// Without threads: does a bit of work on the caller; false if there was none to do.
  virtual bool advance() = 0;
  /// Asks everything to end; does not wait.
  virtual void stop() noexcept = 0;
  /// After stop(): waits for its threads and tasks.
  virtual void join() noexcept = 0;
};

}}  // namespace millrace
