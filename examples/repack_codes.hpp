// The codes that all pictures of repack share, made of the first ones.
//
//   const transcode::jpeg_codes codes = make_repack_codes({.shards = shards, .picture = options, .threads = 2});
//
// Pictures are read in order, as whole samples, and counted by all threads. The sum is the same for any number of them.
// Progress goes to stderr. Errors: those of the shards; data_error for a damaged picture, unless it is left out.
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
  std::uint64_t pictures = 10'000;   ///< at least, if there are as many; the last sample is counted as a whole
  unsigned threads = 1;
  bool leave_out_damaged = false;
  millrace::shard_reader_options reading{};
};

namespace repack_detail {

inline transcode::jpeg_symbol_counts count_sample(const millrace::record& sample, const repack_codes_options& options) {
  transcode::jpeg_symbol_counts counts;
  for (const millrace::bytes& field : sample.fields()) {
    if (!holds_a_picture(field)) continue;
    try {
      count_repacked_symbols(field, options.picture, counts);
    } catch (millrace::data_error& problem) {
      if (options.leave_out_damaged) continue;
      problem.locate(sample.where());
      throw;
    }
  }
  return counts;
}

inline void show_counted(std::uint64_t pictures, bool at_end) {
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  if (at_end || pictures % (on_terminal ? 100 : 10'000) == 0)
    std::fprintf(stderr, "%scodes: %llu pictures counted%s", on_terminal ? "\r" : "",
                 static_cast<unsigned long long>(pictures), on_terminal && !at_end ? "" : "\n");
}

}  // namespace repack_detail

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
    for (const millrace::bytes& field : sample->record.fields()) pictures += holds_a_picture(field) ? 1U : 0U;
    return std::make_shared<const millrace::record>(std::move(sample->record));
  };
  const auto count = [&](const sample_pointer& sample) -> counts_pointer {
    return std::make_shared<const transcode::jpeg_symbol_counts>(repack_detail::count_sample(*sample, options));
  };
  transcode::jpeg_symbol_counts all;
  const auto add = [&](const counts_pointer& one) {
    all += *one;
    repack_detail::show_counted(all.pictures, false);
  };
  using tbb::filter_mode;
  tbb::task_arena(static_cast<int>(options.threads)).execute([&] {
    tbb::parallel_pipeline(2 * options.threads + 2,
                           tbb::make_filter<void, sample_pointer>(filter_mode::serial_in_order, read) &
                               tbb::make_filter<sample_pointer, counts_pointer>(filter_mode::parallel, count) &
                               tbb::make_filter<counts_pointer, void>(filter_mode::serial_out_of_order, add));
  });
  repack_detail::show_counted(all.pictures, true);
  return transcode::jpeg_codes(all);
}
