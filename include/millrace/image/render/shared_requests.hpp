// Joins the requests of images that are made of the same JPEG: it is decoded once, and all of them take its planes.
//
//   mr::detail::shared_requests all;                  // kept from batch to batch
//   all.begin(jobs.size());
//   all.add(0, request, {.width = 500, .height = 375});
//   all.close();
//   decoder.decode_each(all.asked(), [&](std::size_t n, const mr::detail::jpeg_planes_result& got) {
//     all.for_each_job(n, [&](std::size_t job) { render(job, got.planes); });
//   });
//
// Requests are joined if their bytes lie at the same place, and they ask for the same decoding size and limits. A
// joined request is for the box around all of its boxes. It covers what each of them asks for, so a file that it is
// decoded from without a refusal is refused for none of them. Where a joined request is refused, a smaller one may
// still be granted.
// Boxes far from each other are not joined, because decoding all between them would take longer.
// The longest request comes first. Two are decoded at a time, and the rest of the last one is decoded alone, which is
// slower.
// Errors: std::bad_alloc. Threads: one at a time.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes_request.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class shared_requests {
 public:
  /// Begins a list of at most so many jobs.
  void begin(std::size_t jobs) {
    files_.clear();
    asked_.clear();
    first_.clear();
    jobs_.resize(std::max(jobs_.size(), jobs));
  }

  /// Adds the request of a job. `decoded` is the size of the whole image at its decoding size.
  void add(std::size_t job, const jpeg_planes_request& ask, const plane_size& decoded) {
    jobs_[job].ask = ask;
    jobs_[job].next = none;
    const auto is_same = [&](const file& f) {
      return f.box.bytes.data() == ask.bytes.data() && f.box.bytes.size() == ask.bytes.size() &&
             f.box.eighths == ask.eighths && f.box.max_scans == ask.max_scans &&
             f.box.max_memory_bytes == ask.max_memory_bytes;
    };
    const auto found = std::find_if(files_.begin(), files_.end(), is_same);
    if (found == files_.end()) {
      files_.push_back({.box = ask, .size = decoded, .apart = time_of(ask, decoded), .first = job, .last = job});
      return;
    }
    found->box.left = std::min(found->box.left, ask.left);
    found->box.top = std::min(found->box.top, ask.top);
    found->box.right = std::max(found->box.right, ask.right);
    found->box.bottom = std::max(found->box.bottom, ask.bottom);
    found->apart += time_of(ask, decoded);
    found->last = jobs_[found->last].next = job;
  }

  /// Ends the list: asked() and for_each_job() are valid from here on.
  void close() {
    for (const file& f : files_) {
      if (time_of(f.box, f.size) <= f.apart) {
        put(f.box, f, f.first);
        continue;
      }
      for (std::size_t job = f.first, next = 0; job != none; job = next) {
        next = jobs_[job].next;
        jobs_[job].next = none;
        put(jobs_[job].ask, f, job);
      }
    }
  }

  /// Returns the requests to decode, the longest first.
  std::span<const jpeg_planes_request> asked() const noexcept { return asked_; }

  /// Returns whether request `n` is for several jobs.
  bool is_joined(std::size_t n) const noexcept { return jobs_[first_[n].job].next != none; }

  /// Calls use(job) for each job of request `n`, in the order in which they were added.
  template <class Use>
  void for_each_job(std::size_t n, const Use& use) const {
    for (std::size_t job = first_[n].job; job != none; job = jobs_[job].next) use(job);
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  struct job_request {
    jpeg_planes_request ask{};
    std::size_t next = none;   // the next job of the same file
  };
  struct file {
    jpeg_planes_request box{};
    plane_size size{};
    std::uint64_t apart = 0;   // time of all requests one by one
    std::size_t first = none, last = none;
  };
  struct first_job {
    std::size_t job = none, coded_bytes = 0;
  };

  /// Estimates the decoding time, in pixels that are skipped. All rows down to the last one are gone through, unless
  /// there are entries. Blocks of the box are transformed and stored as well, which takes three times as long again.
  static std::uint64_t time_of(const jpeg_planes_request& ask, const plane_size& size) noexcept {
    const std::uint64_t bottom = std::min(ask.bottom, size.height), right = std::min(ask.right, size.width);
    const std::uint64_t box = (bottom - ask.top) * (right - ask.left);
    return (ask.entries.empty() ? bottom * size.width : box) + 3 * box;
  }

  void put(const jpeg_planes_request& ask, const file& of, std::size_t job) {
    const std::size_t coded = ask.bytes.size() * std::min(ask.bottom, of.size.height) / of.size.height;
    std::size_t at = asked_.size();
    while (at > 0 && first_[at - 1].coded_bytes < coded) --at;
    asked_.insert(asked_.begin() + static_cast<std::ptrdiff_t>(at), ask);
    first_.insert(first_.begin() + static_cast<std::ptrdiff_t>(at), {.job = job, .coded_bytes = coded});
  }

  std::vector<job_request> jobs_;
  std::vector<file> files_;
  std::vector<jpeg_planes_request> asked_;
  std::vector<first_job> first_;
};

}}}  // namespace millrace::detail
