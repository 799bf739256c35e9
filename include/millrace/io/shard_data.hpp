// A list of plain shards whose samples can be read in any order: names, indexes and open files.
//
//   mr::shard_data data(names, {.reader = {.fields = {"jpg", "cls"}}});
//   data.counts();                                              // samples of each shard
//   std::size_t good = data.read(wanted, records, failure);     // records[i] is wanted[i]; stops at the first bad one
//   data.fingerprint();                                         // of names, sizes and members: for resume points
//
// Indexes are loaded, or made and kept (index_build.hpp). Neighbours in a shard are read at once (indexed_reader.hpp);
// checksums are learned at the first reading and checked at all later ones. At most 128 files stay open.
// Errors: a compressed shard is a setup_error, a damaged one the data_error of shard_reader, both at the start and
// naming the shard; later as indexed_reader. Threads: read() from any number at a time.
#pragma once

#include <millrace/io/indexed_reader.hpp>
#include <millrace/io/index_build.hpp>
#include <millrace/item/sample.hpp>

#include <mutex>
#include <numeric>

namespace millrace::inline MILLRACE_ABI {

struct shard_data_options {
  indexed_reader_options reader{};
  index_file_options files{};
};

class shard_data {
 public:
  using item = record;

  explicit shard_data(std::vector<std::string> names, shard_data_options options = {})
      : names_(std::move(names)),
        options_(std::move(options)),
        indexes_(build_indexes(names_, {.files = options_.files}).indexes),
        idle_(names_.size()) {
    fingerprint_ = names_.size();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      check(i);
      counts_.push_back(indexes_[i]->samples());
      known_.push_back(indexes_[i]->known_checksums());
      bytes_ += indexes_[i]->identity().size_bytes;
      const std::string_view name = std::string_view(names_[i]).substr(names_[i].rfind('/') + 1);
      const std::uint64_t named = digest_bytes(std::as_bytes(std::span(name)), indexes_[i]->fingerprint());
      fingerprint_ = combine_keys(fingerprint_, combine_keys(named, indexes_[i]->identity().size_bytes));
    }
  }

  shard_data(const shard_data&) = delete;
  shard_data& operator=(const shard_data&) = delete;
  /// Keeps the checksums that were learned.
  ~shard_data() {
    for (std::size_t i = 0; i < names_.size(); ++i) try {
        if (indexes_[i]->known_checksums() > known_[i]) keep_index(index_path(names_[i], options_.files), *indexes_[i]);
      } catch (const error&) {
        // Where indexes cannot be kept they are made, and checksums learned, each time.
      }
  }

  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  const std::string& name(std::size_t part) const noexcept { return names_[part]; }
  /// Shard, key and offset of a sample.
  place place_of(const located_sample& s) const {
    const indexed_sample found = indexes_[s.part]->sample(static_cast<std::uint32_t>(s.index));
    return {.shard = names_[s.part], .key = std::string(found.key), .offset_bytes = found.offset_bytes};
  }
  /// Of all shards, headers and all.
  std::uint64_t size_bytes() const noexcept { return bytes_; }
  /// Folders, times and payloads do not count.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  /// Returns how many at the front of `wanted` are good; `failure` is what is wrong with the next one.
  std::size_t read(std::span<const located_sample> wanted, std::span<record> records, std::exception_ptr& failure) {
    std::vector<std::size_t> order(wanted.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return wanted[a].part < wanted[b].part; });
    std::size_t good = wanted.size();
    std::vector<std::uint32_t> numbers;
    std::vector<record> found;
    for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
      const std::uint64_t part = wanted[order[first]].part;
      numbers.clear();
      for (end = first; end < order.size() && wanted[order[end]].part == part; ++end)
        numbers.push_back(static_cast<std::uint32_t>(wanted[order[end]].index));
      found.assign(numbers.size(), {});
      std::size_t read = 0;
      std::exception_ptr wrong;
      try {
        auto shard = take(static_cast<std::size_t>(part));
        read = shard->reader.read(numbers, found);
        if (read < numbers.size()) wrong = shard->reader.failure();
        give_back(static_cast<std::size_t>(part), std::move(shard));
      } catch (...) {
        wrong = std::current_exception();
      }
      for (std::size_t i = 0; i < read; ++i) records[order[first + i]] = std::move(found[i]);
      if (read < numbers.size() && order[first + read] < good) {
        good = order[first + read];
        failure = wrong;
      }
    }
    return good;
  }

 private:
  static constexpr std::size_t most_open = 128;

  struct open_shard {
    open_shard(const std::string& name, shard_index& index, block_pool& pool, const indexed_reader_options& options)
        : file(name), reader(file, index, pool, options) {}
    file_source file;
    indexed_reader reader;
  };

  void check(std::size_t part) {
    if (indexes_[part]->state() == shard_index::shard_state::compressed)
      throw setup_error("the shard " + printable(names_[part]) + " is compressed: it cannot be read sample by sample",
                        "Unpack it to plain tar, or use shards()");
    if (indexes_[part]->state() != shard_index::shard_state::damaged) return;
    file_source file(names_[part]);
    indexed_reader(file, *indexes_[part], pool_, options_.reader).throw_damage();
  }

  std::unique_ptr<open_shard> take(std::size_t part) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_[part]) {
        --open_;
        return std::move(idle_[part]);
      }
    }
    return std::make_unique<open_shard>(names_[part], *indexes_[part], pool_, options_.reader);
  }

  /// One stays open for each shard, as long as there are not too many.
  void give_back(std::size_t part, std::unique_ptr<open_shard> shard) {
    const std::lock_guard lock(mutex_);
    if (idle_[part]) return;
    if (open_ >= most_open) {
      while (!idle_[oldest_ % idle_.size()]) ++oldest_;
      idle_[oldest_ % idle_.size()].reset();
      --open_;
    }
    idle_[part] = std::move(shard);
    ++open_;
  }

  const std::vector<std::string> names_;
  const shard_data_options options_;
  block_pool pool_;
  const std::vector<std::shared_ptr<shard_index>> indexes_;
  std::vector<std::uint64_t> counts_, known_;   // of each shard: samples; checksums that its file has
  std::uint64_t bytes_ = 0, fingerprint_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<open_shard>> idle_;
  std::size_t open_ = 0, oldest_ = 0;
};

}  // namespace millrace::inline MILLRACE_ABI
