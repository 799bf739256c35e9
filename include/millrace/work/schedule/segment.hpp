// The interfaces of pipeline nodes (the parts of a session that run at the same time, such as groups of stages). A node
// passes samples to the next node, and reports free space to the previous node. The session starts and stops the nodes.
//
//   source -> [sink] parallel segment -> [sink] serial segment -> [sink] batch segment -> slots
//
// While the sink of the next segment has space, a producer puts samples into this sink, in order. When a full sink has
// space again, the sink calls the listener of its producer. The functions of sinks and listeners never wait. Code that
// waits runs on a separate thread: an I/O thread, the thread of a serial stage, or the trainer (the thread that calls
// next()).
#pragma once

#include <millrace/item/sample.hpp>
#include <millrace/measure/values/timeline.hpp>
#include <millrace/measure/values/event_counts.hpp>
#include <millrace/measure/values/flow_statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The maximum concurrency: the number of workers of each stage, and the number of concurrent reads.
struct concurrency_counts {
  std::size_t workers = 0, reads = 0;
  friend bool operator==(const concurrency_counts&, const concurrency_counts&) = default;
};

/// The listener that a full sink calls when it has space again.
class space_listener {
 public:
  virtual ~space_listener() = default;
  /// Any thread may call this function. The implementation must not wait.
  virtual void space_freed() noexcept = 0;
};

/// Accepts samples in order, from one producer at a time.
template <class T>
class sample_sink {
 public:
  virtual ~sample_sink() = default;

  /// Writes pending end marks (of epochs and of the run), then returns whether put() may be called once.
  virtual bool can_accept() = 0;
  /// Accepts the next sample. Requires can_accept().
  virtual void put(sample<T>&& s) = 0;
  /// The result of put_all(): the number of accepted samples, and the bytes that their items keep alive.
  struct accepted {
    std::size_t samples = 0, bytes = 0;
  };
  /// Accepts as many of the next samples as fit into the free space.
  virtual accepted put_all(std::span<sample<T>> next) {
    accepted all;
    while (all.samples < next.size() && can_accept()) {
      sample<T>& s = next[all.samples];
      const std::size_t bytes = held_bytes_of(s);
      put(std::move(s));
      all.bytes += bytes;
      ++all.samples;
    }
    return all;
  }
  /// Ends the current batch, regardless of its number of rows. Only the sink of the last segment supports this call.
  virtual void end_batch() {}
  /// Ends the current epoch. Requires that all its samples have been put.
  virtual void end_epoch() = 0;
  /// Marks the end of a pass. Stages keep their buffered items until the end of the epoch. Requires can_accept().
  virtual void end_pass() {}
  /// Ends the run; no sample may follow. An error is delivered at the position of the next sample.
  virtual void finish(std::exception_ptr error) = 0;
  /// Writes as many pending end marks as fit into the free space. Returns whether all of them are written.
  virtual bool settle() { return true; }
  /// Makes all samples that put() has accepted available to the workers.
  virtual void publish() = 0;
  /// Returns the number of samples that are published and not yet removed.
  virtual std::uint64_t backlog() const noexcept = 0;
  /// Returns the total size in bytes of the samples that have been put and not yet removed.
  virtual std::size_t held_bytes() const noexcept = 0;
  /// Sets the listener to call when space is free again.
  virtual void set_listener(space_listener* producer) = 0;
  /// Returns the position of the next sample that is put. Returns `unknown` if samples are not rows, or if an earlier
  /// session has already delivered that sample.
  virtual std::uint64_t next_row() const noexcept { return error_location::unknown; }
};

/// Receives the progress of a segment's input. A ticket is the sequence number of a sample in the input of a segment,
/// from 0.
class claimed_ticket_gate {
 public:
  virtual ~claimed_ticket_gate() = default;
  /// Declares that the input of all tickets below `tickets` exists.
  virtual void set_available(std::uint64_t tickets) = 0;
  /// Returns the last argument of set_available().
  virtual std::uint64_t available() const noexcept = 0;
  /// Declares that no more tickets will become available.
  virtual void set_last() noexcept {}
};

/// A running part of a session: a source, a segment, or the batch output.
class pipeline_node {
 public:
  virtual ~pipeline_node() = default;
  /// Sets the event counts that the node increments. Called before start().
  virtual void count_into(event_counts&) noexcept {}
  /// Adds the current metrics of the node's stages. Any thread may call this function after start().
  virtual void add_to(flow_statistics&, std::uint64_t now_ns) const { static_cast<void>(now_ns); }
  /// Returns a line that describes the node's work and waits, for the diagnosis of a stalled run. Any thread may call
  /// this function after start().
  virtual std::string waits(std::uint64_t now_ns) const { return static_cast<void>(now_ns), std::string(); }
  /// Adds the latest spans of the node's threads. Any thread may call this function after start().
  virtual void add_to(timeline&, std::uint64_t start_ns) const { static_cast<void>(start_ns); }
  /// Sets the number of the node's active workers or reads. Any thread may call this function after start().
  virtual void set_active(const concurrency_counts&) {}
  /// Starts the node's threads, if it has any.
  virtual void start() = 0;
  /// Does one unit of work on the calling thread, for sessions without threads. Returns false if there was nothing to
  /// do.
  virtual bool advance() = 0;
  /// Requests that all work ends. Does not wait.
  virtual void stop() noexcept = 0;
  /// Blocks until the node's threads and tasks have ended. Called after stop().
  virtual void join() noexcept = 0;
};

}}}   // namespace millrace::detail
