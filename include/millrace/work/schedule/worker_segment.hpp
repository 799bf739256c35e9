// The base class of the segments that workers run. A segment consists of stages without a queue between them.
//
//   class my_segment : public mr::detail::worker_segment {
//    public:
//     my_segment() : worker_segment({.name = "map", .workers = &pool, .claims = {.max_workers = 8}}) {}
//     void run(std::size_t worker, std::uint64_t first, std::size_t count) noexcept override;
//     void start() override { dispatcher_->set_limit(64); }
//   };
//
// The class is not a template, so that it is not compiled again for each flow. Errors: none.
// Threads: workers call run() as described in work/schedule/dispatcher.hpp. Any thread may call the other functions.
#pragma once

#include <millrace/item/scratch.hpp>
#include <millrace/work/schedule/dispatcher.hpp>

#include <memory>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// A segment with a dispatcher, which assigns the work, and a scratch (reusable working memory) for each worker.
class worker_segment : public dispatcher_work, public pipeline_node {
 public:
  struct options {
    const char* name = "";                ///< name in metrics and in waits()
    const char* span_name = "";           ///< name in timelines
    worker_executor* workers = nullptr;   ///< null if advance() does the work
    dispatcher::options claims{};
  };

  explicit worker_segment(const options& o);
  worker_segment(const worker_segment&) = delete;
  worker_segment& operator=(const worker_segment&) = delete;
  ~worker_segment() override;

  using pipeline_node::add_to;
  void add_to(timeline& t, std::uint64_t start_ns) const override;
  void count_into(event_counts& counts) noexcept override;
  std::string waits(std::uint64_t now_ns) const override;
  bool advance() override { return dispatcher_->advance(); }
  void set_active(const concurrency_counts& open) override { dispatcher_->set_active(open.workers); }
  void stop() noexcept override { dispatcher_->stop(); }
  void join() noexcept override { dispatcher_->join(); }

 protected:
  const char* const name_;
  const char* const span_name_;
  std::vector<scratch> scratch_;   // index: worker
  const std::shared_ptr<dispatcher> dispatcher_;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/work/schedule/impl/worker_segment.inl>
#endif
