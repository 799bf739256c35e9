// The samples of shards, one after the other, without those of finished shards.
//
//   repack_reader from(shards, [&](std::size_t shard) { return progress.finished(shard); });
//   while (auto sample = from.next()) use(sample->record, sample->shard);          // the record; its shard number
//   from.skipped();                                                                // counts of omitted members
//
// Errors: those of shard_reader, with their location; data_error for a shard without samples. Threads: one.
#pragma once

#include <millrace/io/tar/read/shard_reader.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

class repack_reader {
 public:
  repack_reader(const std::vector<std::string>& shards, std::function<bool(std::size_t)> is_finished,
                millrace::shard_reader_options reading = {})
      : shards_(shards), is_finished_(std::move(is_finished)), reading_(std::move(reading)) {}

  struct sample {
    millrace::record record;
    std::size_t shard;
  };

  /// Returns the next sample; empty at the end.
  std::optional<sample> next() {
    try {
      for (;;) {
        if (shard_) {
          if (auto record = shard_->next()) return sample{std::move(*record), at_};
          close();
          ++at_;
        }
        while (at_ < shards_.size() && is_finished_(at_)) ++at_;
        if (at_ == shards_.size()) return std::nullopt;
        shard_.emplace(std::make_unique<millrace::file_source>(shards_[at_]), pool_, reading_);
      }
    } catch (...) {
      std::rethrow_exception(millrace::located_exception({.stage = "repack", .shard = shards_[at_]}));
    }
  }

  /// Returns the number of the current shard, also after an error.
  std::size_t shard() const { return at_; }
  const millrace::event_counts& skipped() const { return skipped_; }

 private:
  void close() {
    if (shard_->counters().samples == 0)
      throw millrace::data_error("the shard has no samples", "Exclude it from the list of shards");
    shard_->report(skipped_);
    shard_.reset();
  }

  const std::vector<std::string>& shards_;
  std::function<bool(std::size_t)> is_finished_;
  millrace::shard_reader_options reading_;
  millrace::block_pool pool_;
  std::optional<millrace::shard_reader> shard_;
  std::size_t at_ = 0;
  millrace::event_counts skipped_;
};

inline bool is_jpeg(const millrace::bytes& field) {
  return field.name().ends_with("jpg") || field.name().ends_with("jpeg");
}
