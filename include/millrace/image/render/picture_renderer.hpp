// Renders planned images into their rows: chooses a decoder for each image, decodes and resizes.
//
//   auto& renderer = scratch.get<mr::detail::picture_renderer>();
//   const mr::detail::picture_job job{.format = &mr::detail::jpeg_format, .data = &file, .options = &o,
//                                    .header = &h, .plan = plan, .target = t};
//   renderer.render({&job, 1}, scratch);                    // several jobs per call are faster
//
// Each worker has one renderer. The built-in decoder decodes the files that it supports, and libjpeg decodes all
// others. Both decoders detect the same damage, with one exception: the built-in decoder does not detect damage in data
// that it skips by means of restart markers or entry points. With the built-in decoder, several crops of one JPEG share
// the decoded planes (luma and chroma). The pixels do not depend on the CPU. The pixels depend on the decoder only for
// `fast` images at full size (picture_quality).
// Shapes: pixel_target.hpp. Errors: data_error for one damaged image, with its location; it is unspecified which of the
// other images were rendered. Threads: not thread-safe; one thread at a time.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/jpeg/baseline/jpeg_planes.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_decoder.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_input.hpp>
#include <millrace/image/jpeg/progressive/progressive_decoder.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/image/resize/plane_resizer.hpp>
#include <millrace/image/resize/resize_plan.hpp>
#include <millrace/image/values/jpeg_refusal.hpp>
#include <millrace/item/bytes.hpp>
#include <millrace/item/record.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

// Joins requests for the same JPEG. The JPEG is then decoded once, and all jobs that render it share the decoded planes
// (luma and chroma).
//
//   mr::detail::shared_decode_requests all;                  // reused for all batches
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
// between them would cost more. The decoder processes two requests at a time. The request with the most bytes to decode
// is first. The request with the fewest bytes is last, because the decoder may process it alone.
// Errors: std::bad_alloc. Threads: not thread-safe; one thread at a time.

class shared_decode_requests {
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

  /// Returns the requests. The request with the most bytes to decode is first.
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
  /// more units for each pixel.
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

/// The result of the built-in decoder for an image. If the refusal is `none`, the decoder has rendered the image.
struct built_in_result {
  jpeg_refusal refusal = jpeg_refusal::none;
  entry_origin entries = entry_origin::none;
  bool entries_refused = false;
};

/// Counts the events of JPEGs that were rendered together.
struct render_counts {
  std::uint64_t built_in = 0, built_in_progressive = 0;   ///< decoded by the built-in decoder
  std::uint64_t smaller = 0, by_entries = 0, by_restarts = 0, entries_refused = 0;
  std::uint64_t bytes = 0, pixels = 0;   ///< bytes of the files; pixels of the stored images
  std::uint64_t shared = 0;              ///< jobs that reuse the decoded planes of another job
  libjpeg_counts libjpeg{};              ///< counts of the images that libjpeg decoded

  /// Adds a rendered image.
  void add(const picture_job& job, const built_in_result& result) noexcept {
    const bool decoded = result.refusal == jpeg_refusal::none;
    built_in += decoded;
    built_in_progressive += decoded && job.header->progressive;
    smaller += job.eighths != 8;
    by_entries += result.entries == entry_origin::packed;
    by_restarts += result.entries == entry_origin::restart_markers;
    entries_refused += result.entries_refused;
    bytes += job.data->size();
    pixels += std::uint64_t{job.header->width} * job.header->height;
  }

  /// Adds events to the scratch: these counts, and the reasons for refusals of the built-in decoder.
  void count_into(scratch& s, std::span<const built_in_result> results) const noexcept {
    s.count(text_of(built_in > 1 ? event_name::own_together : event_name::own_alone), built_in);
    for (const built_in_result& r : results)
      if (r.refusal != jpeg_refusal::none) s.count(text_of(event_of(r.refusal)));
    s.count(text_of(event_name::bytes), bytes);
    s.count(text_of(event_name::pixels), pixels);
    s.count(text_of(event_name::smaller), smaller);
    s.count(text_of(event_name::by_entries), by_entries);
    s.count(text_of(event_name::by_restarts), by_restarts);
    s.count(text_of(event_name::entries_refused), entries_refused);
    s.count(text_of(event_name::shared), shared);
    s.count(text_of(event_name::progressive), built_in_progressive + libjpeg.progressive);
    s.count(text_of(event_name::damaged), libjpeg.damaged);
    s.count(text_of(event_name::warnings), libjpeg.warnings);
  }
};

class picture_renderer {
 public:
  MILLRACE_RARE picture_renderer() = default;
  MILLRACE_RARE ~picture_renderer() = default;
  picture_renderer(const picture_renderer&) = delete;
  picture_renderer& operator=(const picture_renderer&) = delete;

  void render(std::span<const picture_job> jobs, scratch& s) {
    outcomes_.assign(jobs.size(), {});
    const libjpeg_counts before = libjpeg_.counts();
    decode_by_built_in(jobs, s);
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (outcomes_[i].refusal != jpeg_refusal::none) decode_by_libjpeg(jobs[i], outcomes_[i].refusal, s);
    // Events are counted only after success, because the caller may render the same images again after an error.
    render_counts sums{.shared = shared_, .libjpeg = libjpeg_.counts() - before};
    for (std::size_t i = 0; i < jobs.size(); ++i) sums.add(jobs[i], outcomes_[i]);
    sums.count_into(s, outcomes_);
    built_in_pictures_ += sums.built_in;
    built_in_progressive_ += sums.built_in_progressive;
  }

  libjpeg_counts counts() const noexcept {
    libjpeg_counts all = libjpeg_.counts();
    all.pictures += built_in_pictures_;
    all.progressive += built_in_progressive_;
    return all;
  }

 private:
  /// Returns the reason to skip the built-in decoder; `none` to use it.
  jpeg_refusal reason_to_skip(const picture_job& job) const noexcept {
    if (job.options->decoder == picture_decoder::libjpeg) return jpeg_refusal::not_asked;
    // If the bits depend on the decoder, the choice of the decoder must not depend on the CPU.
    const bool for_speed = job.options->decoder == picture_decoder::automatic && !resizes_planes(job);
    const bool fast = jpeg_plane_decoder::has_fast_code() &&
                      (!job.header->progressive || progressive_decoder::has_fast_code());
    return for_speed && !fast ? jpeg_refusal::machine : jpeg_refusal::none;
  }

  static bool resizes_planes(const picture_job& job) noexcept {
    return job.options->quality == picture_quality::fast && job.eighths == 8;
  }

  static plane_size decoded_size(const picture_job& job) noexcept {
    return {.width = at_eighths<std::size_t>(job.header->width, job.eighths),
            .height = at_eighths<std::size_t>(job.header->height, job.eighths)};
  }

  static jpeg_planes_request request_of(const picture_job& job) noexcept {
    const plane_box box = resize_source_box(job.plan, decoded_size(job));
    // libjpeg upsamples chroma by pairs of rows and reads the row below each pair. With more rows than libjpeg reads,
    // the built-in decoder might refuse a file needlessly. With fewer rows, the built-in decoder would miss damage that
    // libjpeg detects.
    return {.bytes = *job.data,
            .left = box.left,
            .top = box.top,
            .right = box.right,
            .bottom = box.bottom / 2 * 2 + 1,
            .eighths = static_cast<int>(job.eighths),
            .entries = job.data->entries(),
            .max_scans = job.options->limits.max_scans,
            .max_memory_bytes = job.options->limits.max_memory_bytes};
  }

  void start(const picture_job& job) {
    resizer_.start({.plan = job.plan, .fast = resizes_planes(job), .target = finisher_.target_of(job)});
  }

  /// Returns the result of the progressive decoder if the file is progressive; otherwise returns `baseline`.
  jpeg_planes_result or_progressive(const jpeg_planes_result& baseline, const jpeg_planes_request& request) {
    return baseline.refusal == jpeg_refusal::progressive ? progressive_.decode(request) : baseline;
  }

  void decode_by_built_in(std::span<const picture_job> jobs, scratch& s) {
    requests_.begin(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      outcomes_[i].refusal = reason_to_skip(jobs[i]);
      if (outcomes_[i].refusal != jpeg_refusal::none) continue;
      requests_.add(i, request_of(jobs[i]), decoded_size(jobs[i]));
    }
    requests_.close();
    shared_ = 0;
    planes_.decode_each(requests_.list(), [&](std::size_t n, const jpeg_planes_result& baseline) {
      const jpeg_planes_result result = or_progressive(baseline, requests_.list()[n]);
      std::size_t rendered = 0;
      requests_.for_each_job(n, [&](std::size_t i) {
        render_planes(jobs[i], result, outcomes_[i], s);
        shared_ += result && rendered++ > 0 ? 1U : 0U;
      });
    });
    // If a joined request was refused, its images are decoded alone, because the damage may be below some of the crops.
    // A progressive file is always read to its end, so decoding it again would not help.
    for (std::size_t n = 0; n < requests_.list().size(); ++n)
      if (requests_.is_joined(n))
        requests_.for_each_job(n, [&](std::size_t i) {
          if (outcomes_[i].refusal == jpeg_refusal::none || jobs[i].header->progressive) return;
          render_planes(jobs[i], planes_.decode(request_of(jobs[i])), outcomes_[i], s);
        });
  }

  void render_planes(const picture_job& job, const jpeg_planes_result& result, built_in_result& outcome, scratch& s) {
    outcome = built_in_result{
        .refusal = result.refusal, .entries = result.entries, .entries_refused = result.entries_refused};
    if (!result) return;
    start(job);
    resizer_.render(result.planes);
    finisher_.finish(job, s);
  }

  MILLRACE_RARE void decode_by_libjpeg(const picture_job& job, jpeg_refusal why, scratch& s) {
    try {
      if (job.options->decoder == picture_decoder::built_in)
        throw data_error(
            std::string("the built-in decoder was requested but does not support this JPEG: ") + refusal_name(why),
            "Set jpeg_options::decoder to picture_decoder::automatic", {.stage = "jpeg"});
      run_libjpeg(job);
      finisher_.finish(job, s);
    } catch (error& e) {
      e.locate(location_of(*job.data));
      throw;
    }
  }

  MILLRACE_RARE void run_libjpeg(const picture_job& job) {
    start(job);
    const picture_limits& most = job.options->limits;
    libjpeg_.open(*job.data,
                  {.max_scans = most.max_scans,
                   .max_memory_bytes = most.max_memory_bytes,
                   .accept_damaged = job.options->accept_damaged},
                  job.eighths);
    if (libjpeg_.stored_width() != job.header->width || libjpeg_.stored_height() != job.header->height ||
        libjpeg_.components() != job.header->components) {
      libjpeg_.abandon();
      throw data_error("the JPEG has two different frame headers", "Fetch the file again, or leave the sample out",
                       {.stage = "jpeg"});
    }
    libjpeg_.decode({.left = resizer_.columns().source_begin(),
                     .top = resizer_.rows().source_begin(),
                     .right = resizer_.columns().source_end(),
                     .bottom = resizer_.rows().source_end()},
                    resizer_);
  }

  jpeg_plane_decoder planes_;
  progressive_decoder progressive_;
  jpeg_decoder libjpeg_;
  plane_resizer resizer_;
  row_finisher finisher_;
  shared_decode_requests requests_;
  std::vector<built_in_result> outcomes_;   // one per job
  std::uint64_t built_in_pictures_ = 0, built_in_progressive_ = 0, shared_ = 0;
};

/// Returns the event counts of the images rendered with this scratch so far.
inline libjpeg_counts jpeg_counts_of(scratch& s) { return s.get<picture_renderer>().counts(); }

/// Renders JPEG jobs (one per image) with the picture_renderer in `s`, the worker's working memory.
inline void render_jpegs(std::span<const picture_job> jobs, scratch& s) { s.get<picture_renderer>().render(jobs, s); }

/// The JPEG format for image plans.
inline constexpr picture_format jpeg_format{.name = "jpeg", .render = render_jpegs, .decodes_smaller = true};

}}}   // namespace millrace::detail
