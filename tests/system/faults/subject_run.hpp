// Runs a flow to its end and adds each batch to the delivered rows.
#pragma once

#include "subject.hpp"

#include <millrace/run/session.hpp>

inline millrace::session_options quietly(std::uint64_t epochs = 1) {
  return {.epochs = epochs, .threads = 2, .io_threads = 2, .memory_bytes = std::size_t{256} << 20,
          .notice = millrace::quiet, .lanes = 4};
}

template <class Flow>
void deliver(Flow flow, const millrace::session_options& options, delivered& to) {
  millrace::session run{std::move(flow), options};
  for (auto& b : run) add_columns(to, b);
}
