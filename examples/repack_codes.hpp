// The codes that all images of repack share, computed from the first ones.
//
//   const transcode::jpeg_codes codes = make_repack_codes({.shards = shards, .picture = options, .threads = 2});
//
// Complete samples are read in order, and counted by all threads. The sum does not depend on the number of threads.
// Progress is printed to stderr.
// Errors: those of the shards; data_error for a damaged image, unless skip_damaged is set.
#pragma once

#include "repack_picture.hpp"
#include "repack_reader.hpp"

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

struct repack_codes_options {
  std::vector<std::string> shards{};
  repack_options picture{};
  std::uint64_t pictures = 10'000;   ///< minimum, if there are that many; the last sample is counted completely
  unsigned threads = 1;
  bool skip_damaged = false;
  millrace::shard_reader_options reading{};
};

namespace repack_detail {

inline transcode::jpeg_symbol_counts count_sample(const millrace::record& sample, const repack_codes_options& options) {
  transcode::jpeg_symbol_counts counts;
  for (const millrace::bytes& field : sample.fields()) {
    if (!is_jpeg(field)) continue;
    try {
      count_repacked_symbols(field, options.picture, counts);
    } catch (millrace::data_error& problem) {
      if (options.skip_damaged) continue;
      problem.locate(sample.where());
      throw;
    }
  }
  return counts;
}

inline void print_progress(std::uint64_t pictures, bool at_end) {
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  if (at_end || pictures % (on_terminal ? 100 : 10'000) == 0)
    std::fprintf(stderr, "%scodes: %llu images counted%s", on_terminal ? "\r" : "",
                 static_cast<unsigned long long>(pictures), on_terminal && !at_end ? "" : "\n");
}

}   // namespace repack_detail

inline transcode::jpeg_codes make_repack_codes(const repack_codes_options& options) {
  using counts_pointer = std::shared_ptr<const transcode::jpeg_symbol_counts>;
  using sample_pointer = std::shared_ptr<const millrace::record>;
  repack_reader from(options.shards, [](std::size_t) { return false; }, options.reading);
  std::uint64_t pictures = 0;
  const auto read = [&](tbb::flow_control& control) -> sample_pointer {
    auto sample = pictures < options.pictures ? from.next() : std::nullopt;
    if (!sample) {
      control.stop();
      return nullptr;
    }
    for (const millrace::bytes& field : sample->record.fields()) pictures += is_jpeg(field) ? 1U : 0U;
    return std::make_shared<const millrace::record>(std::move(sample->record));
  };
  const auto count = [&](const sample_pointer& sample) -> counts_pointer {
    return std::make_shared<const transcode::jpeg_symbol_counts>(repack_detail::count_sample(*sample, options));
  };
  transcode::jpeg_symbol_counts all;
  const auto add = [&](const counts_pointer& one) {
    all += *one;
    repack_detail::print_progress(all.pictures, false);
  };
  using tbb::filter_mode;
  tbb::task_arena(static_cast<int>(options.threads)).execute([&] {
    tbb::parallel_pipeline(2 * options.threads + 2,
                           tbb::make_filter<void, sample_pointer>(filter_mode::serial_in_order, read) &
                               tbb::make_filter<sample_pointer, counts_pointer>(filter_mode::parallel, count) &
                               tbb::make_filter<counts_pointer, void>(filter_mode::serial_out_of_order, add));
  });
  repack_detail::print_progress(all.pictures, true);
  return transcode::jpeg_codes(all);
}
