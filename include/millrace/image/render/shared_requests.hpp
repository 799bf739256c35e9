// Joins requests for the same JPEG. The JPEG is then decoded once, and all its images share the decoded planes (luma
// and chroma).
//
//   mr::detail::shared_requests all;                  // reused for all batches
//   all.begin(jobs.size());
//   all.add(0, request, {.width = 500, .height = 375});
//   all.close();
//   decoder.decode_each(all.list(), [&](std::size_t n, const mr::detail::jpeg_planes_result& got) {
//     all.for_each_job(n, [&](std::size_t job) { render(job, got.planes); });
//   });
//
// Requests are joined if they have the same decoding size and limits, and their bytes are at the same address. A joined
// request is for the smallest box that contains the boxes of all its requests. If the decoder refuses the joined
// request, a separate request may still succeed. Boxes far from each other are not joined, because decoding the area
// between them would cost more. Two requests are decoded at a time. The longest request is first and the shortest is
// last, because the last request may be decoded alone.
// Errors: std::bad_alloc. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/resize/resize_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

class shared_requests {
 public:
  /// Begins a list of at most `jobs` jobs.
  void begin(std::size_t jobs) {
    files_.clear();
    requests_.clear();
    first_.clear();
    jobs_.resize(std::max(jobs_.size(), jobs));
  }

  /// Adds the request of a job. `decoded` is the size of the full image when it is decoded at the requested scale.
  void add(std::size_t job, const jpeg_planes_request& request, const plane_size& decoded) {
    jobs_[job].request = request;
    jobs_[job].next = none;
    const auto is_same = [&](const file& f) {
      return f.box.bytes.data() == request.bytes.data() && f.box.bytes.size() == request.bytes.size() &&
             f.box.eighths == request.eighths && f.box.max_scans == request.max_scans &&
             f.box.max_memory_bytes == request.max_memory_bytes;
    };
    const auto it = std::find_if(files_.begin(), files_.end(), is_same);
    if (it == files_.end()) {
      files_.push_back(
          {.box = request, .size = decoded, .separate_time = time_of(request, decoded), .first = job, .last = job});
      return;
    }
    it->box.left = std::min(it->box.left, request.left);
    it->box.top = std::min(it->box.top, request.top);
    it->box.right = std::max(it->box.right, request.right);
    it->box.bottom = std::max(it->box.bottom, request.bottom);
    it->separate_time += time_of(request, decoded);
    it->last = jobs_[it->last].next = job;
  }

  /// Ends the list. After this call, list() and for_each_job() are valid.
  void close() {
    for (const file& f : files_) {
      if (time_of(f.box, f.size) <= f.separate_time) {
        put(f.box, f, f.first);
        continue;
      }
      for (std::size_t job = f.first, next = 0; job != none; job = next) {
        next = jobs_[job].next;
        jobs_[job].next = none;
        put(jobs_[job].request, f, job);
      }
    }
  }

  /// Returns the requests to decode, the longest first.
  std::span<const jpeg_planes_request> list() const noexcept { return requests_; }

  /// Returns whether request `n` is for several jobs.
  bool is_joined(std::size_t n) const noexcept { return jobs_[first_[n].job].next != none; }

  /// Calls use(job) for each job of request `n`, in the order in which the jobs were added.
  template <class Use>
  void for_each_job(std::size_t n, const Use& use) const {
    for (std::size_t job = first_[n].job; job != none; job = jobs_[job].next) use(job);
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  struct job_request {
    jpeg_planes_request request{};
    std::size_t next = none;   // the next job of the same file
  };
  struct file {
    jpeg_planes_request box{};
    plane_size size{};
    std::uint64_t separate_time = 0;   // time of all requests one by one
    std::size_t first = none, last = none;
  };
  struct first_job {
    std::size_t job = none, coded_bytes = 0;
  };

  /// Estimates the decoding time. The unit is the time to skip one pixel. All rows above the bottom edge of the box are
  /// decoded, unless the request has entry points. Pixels in the box are also transformed and stored, which costs three
  /// more units.
  static std::uint64_t time_of(const jpeg_planes_request& request, const plane_size& size) noexcept {
    const std::uint64_t bottom = std::min(request.bottom, size.height), right = std::min(request.right, size.width);
    const std::uint64_t box = (bottom - request.top) * (right - request.left);
    return (request.entries.empty() ? bottom * size.width : box) + 3 * box;
  }

  void put(const jpeg_planes_request& request, const file& of, std::size_t job) {
    const std::size_t coded = request.bytes.size() * std::min(request.bottom, of.size.height) / of.size.height;
    std::size_t at = requests_.size();
    while (at > 0 && first_[at - 1].coded_bytes < coded) --at;
    requests_.insert(requests_.begin() + static_cast<std::ptrdiff_t>(at), request);
    first_.insert(first_.begin() + static_cast<std::ptrdiff_t>(at), {.job = job, .coded_bytes = coded});
  }

  std::vector<job_request> jobs_;
  std::vector<file> files_;
  std::vector<jpeg_planes_request> requests_;
  std::vector<first_job> first_;
};

}}}   // namespace millrace::detail
