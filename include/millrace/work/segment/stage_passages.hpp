// Counts, in each pass, the inputs and outputs of the stages that can drop samples. The error for a pass without rows
// contains these counts.
//
//   mr::detail::stage_passages all;                          // of one session
//   auto& filter = all.add("filter", {.may_buffer = false});   // in the order of the flow, before the run
//   filter.count_input();  filter.count_outputs(1);  filter.end_pass();   // by the thread that emits the outputs
//   const auto pass = all.close_pass(true);                  // by the last segment, for each end of a pass
//   pass.text;                                               // "0 of 50,000 samples passed filter 1"
//
// Errors: none. Threads: the example states which thread calls which function. A stage may be several passes ahead of
// the last segment, which fills the batches.
#pragma once

#include <millrace/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The counts of one stage.
class stage_passage {
 public:
  struct counts {
    std::uint64_t inputs = 0, outputs = 0;
  };

  stage_passage(std::string name, bool may_buffer);
  ~stage_passage();

  void count_input() noexcept { ++now_.inputs; }
  void count_outputs(std::uint64_t items) noexcept { now_.outputs += items; }
  void end_pass();

 private:
  friend class stage_passages;

  const std::string name_;
  const bool may_buffer_;   // whether the stage may emit items of a pass in a later pass
  counts now_;
  std::mutex mutex_;
  std::deque<counts> passes_;   // guarded by mutex_: passes that ended at this stage, but not yet at the last segment
};

/// The counts of all stages that can drop samples.
class stage_passages {
 public:
  struct stage_traits {
    bool may_buffer = false;
  };
  /// The result of a pass.
  struct pass {
    std::string text{};     ///< the counts as a phrase; may be empty
    std::string stage{};    ///< name of the stage without outputs; may be empty
    bool nothing = false;   ///< true if `stage` received samples, emitted none and buffers none
  };

  stage_passages();
  stage_passages(const stage_passages&) = delete;
  stage_passages& operator=(const stage_passages&) = delete;
  ~stage_passages();

  /// Adds the next stage of the flow. Returns its counts. The name of the stage is `kind` and a number: the second
  /// stage of the kind "filter" has the name "filter 2".
  stage_passage& add(const std::string& kind, stage_traits traits);
  /// Ends a pass at the last segment. If `describe` is true, the result contains the texts.
  pass close_pass(bool describe);

 private:
  std::deque<stage_passage> stages_;   // a deque, because the addresses of its elements do not change
};

/// The number of rows of a pass, and the number of rows of a batch.
struct pass_rows {
  std::size_t rows = 0, batch = 0;
};
/// Returns the error for a pass that has too few rows for a batch.
setup_error too_few_rows_error(const pass_rows& of, const stage_passages::pass& pass);

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/segment/impl/stage_passages.inl>
#endif
