// Counts the events of JPEGs that were rendered together.
//
//   mr::detail::render_counts sums;
//   for (std::size_t i = 0; i < jobs.size(); ++i) sums.add(jobs[i], results[i]);
//   sums.count_into(scratch, results);
//
// Errors: none. Threads: not synchronized.
#pragma once

#include <millrace/image/jpeg/baseline/jpeg_entry.hpp>
#include <millrace/image/values/jpeg_refusal.hpp>
#include <millrace/image/jpeg/libjpeg/jpeg_input.hpp>
#include <millrace/image/render/picture_job.hpp>
#include <millrace/item/scratch.hpp>
#include <millrace/measure/values/event_names.hpp>

#include <cstdint>
#include <span>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// The result of the built-in decoder for an image. If the refusal is `none`, the decoder has rendered the image.
struct built_in_result {
  jpeg_refusal refusal = jpeg_refusal::none;
  entry_origin entries = entry_origin::none;
  bool entries_refused = false;
};

/// Counts of events, added up over images.
struct render_counts {
  std::uint64_t built_in = 0, built_in_progressive = 0;   ///< decoded by the built-in decoder
  std::uint64_t smaller = 0, by_entries = 0, by_restarts = 0, entries_refused = 0;
  std::uint64_t bytes = 0, pixels = 0;   ///< sizes of the files, as stored
  std::uint64_t shared = 0;              ///< images rendered from the planes of another image
  jpeg_counts libjpeg{};                 ///< counts of the images that libjpeg decoded

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

  /// Adds these counts, and the reasons for which the built-in decoder refused images, to the events of the scratch.
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

}}}  // namespace millrace::detail
