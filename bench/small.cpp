// small: records of 2 KB from plain tar to the batch, with and without an index, compared with reads and copies alone
//
// 131,072 samples of a 2,048-byte "bin" and a "cls" in 16 shards, in the page cache. The CPU time of the process counts
// in the steady state: a warm-up first allocates buffers and records checksums, so that the checksums of every counted
// sample are verified. The floors only read the same bytes and copy them to a batch.
#include "harness.hpp"
#include "tar_sets.hpp"
#include "threads.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/millrace.hpp>
#include <millrace/order/lane_cursor.hpp>
#include <millrace/sources/shards.hpp>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <semaphore>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::size_t payload_bytes = 2048, batch_rows = 256, window = 8192;
constexpr std::uint64_t seed = 7;

struct example {
  mr::bytes data;
  std::int32_t label;
};
example prepare(const mr::record& r) { return {r["bin"], r["cls"].as<std::int32_t>()}; }

/// The same through an array that owns its elements.
struct array_example {
  mr::tensor<std::uint8_t, 1> data;
  std::int32_t label;
};
array_example prepare_array(const mr::record& r) {
  return {mr::array<std::uint8_t, 1>(r["bin"]), r["cls"].as<std::int32_t>()};
}

/// A checksum of the delivered samples that does not depend on their order: a byte of each page, and the labels.
struct checksum {
  std::uint64_t bytes = 0, labels = 0;
  friend bool operator==(const checksum&, const checksum&) = default;
};

struct outcome {
  double ns = 0;   // CPU time per sample
  std::map<std::string, double> thread_ns{};
  checksum sum{};
};

struct task {
  const bench::tar_set& set;
  std::uint64_t epochs;
};

template <class Example = example, class Source, class Prepare>
outcome run_session(const task& t, const Source& source, const Prepare& map_to, mr::damage_options on_damage = {}) {
  mr::session run{source | mr::shuffle({.window = window}) | mr::map(map_to) |
                      mr::batch<&Example::data, &Example::label>({.size = batch_rows}),
                  {.epochs = mr::endless,
                   .threads = 1,
                   .read_ahead_bytes = std::size_t{24} << 20,   // full from the warm-up on, as in pipeline.cpp
                   .notice = mr::quiet,
                   .on_damage = std::move(on_damage)}};
  const std::uint64_t batches = t.set.samples / batch_rows;
  for (std::uint64_t i = 0; i < batches; ++i) static_cast<void>(run.next());
  outcome result;
  const auto threads = bench::threads_now();
  const bench::clocks before = bench::now();
  for (std::uint64_t i = 0; i < t.epochs * batches; ++i) {
    const auto b = run.next();
    const auto bytes = b.template get<&Example::data>().host();
    const auto labels = b.template get<&Example::label>().host();
    for (std::size_t row = 0; row < b.size(); ++row) {
      result.sum.bytes += bytes.data()[row * payload_bytes];
      result.sum.labels += static_cast<std::uint64_t>(labels.data()[row]);
    }
  }
  const auto samples = static_cast<double>(t.epochs * t.set.samples);
  result.ns = 1e9 * (bench::now() - before).cpu_s / samples;
  const bench::session_times by_thread = bench::session_times_since(threads);
  result.thread_ns = {{"I/O threads", by_thread.reading_ns / samples},
                      {"trainer", by_thread.trainer_ns / samples},
                      {"worker", by_thread.workers_ns / samples}};
  return result;
}

/// Returns the index of each shard, with the offsets of its payloads.
std::vector<mr::detail::shard_index> indexes_of(const bench::tar_set& set) {
  std::vector<mr::detail::shard_index> all;
  mr::block_pool pool;
  for (const auto& shard : set.shards) {
    mr::file_source source(shard);
    all.push_back(mr::detail::scan_shard(source, pool));
  }
  return all;
}

std::vector<std::unique_ptr<mr::file_source>> files_of(const bench::tar_set& set) {
  std::vector<std::unique_ptr<mr::file_source>> files;
  for (const auto& shard : set.shards) files.push_back(std::make_unique<mr::file_source>(shard));
  return files;
}

/// Returns an epoch of the plan.
std::vector<mr::detail::located_sample> order_of(const std::vector<mr::detail::shard_index>& indexes) {
  const mr::detail::exact_order plan({.seed = seed,
                                      .counts = std::vector<std::uint64_t>(indexes.size(), indexes[0].samples()),
                                      .window = window,
                                      .global_batch = batch_rows});
  std::vector<mr::detail::located_sample> order;
  for (mr::detail::lane_cursor cursor(plan); const auto next = cursor.next();) order.push_back(next->sample);
  return order;
}

/// One read and one copy per sample, in the plan's order.
double floor_by_samples(const task& t, const std::vector<mr::detail::shard_index>& indexes) {
  const auto files = files_of(t.set);
  const auto order = order_of(indexes);
  std::vector<std::byte> rows(4 * batch_rows * payload_bytes), buffer(4 * payload_bytes);
  std::size_t row = 0;
  const bench::clocks before = bench::now();
  for (std::uint64_t epoch = 0; epoch < t.epochs; ++epoch)
    for (const auto& s : order) {
      const mr::detail::shard_index& index = indexes[s.shard];
      const auto sample = index.sample(static_cast<std::uint32_t>(s.index));
      const auto first = index.member(sample.first_member), last = index.member(sample.end_member - 1);
      const std::size_t size = last.offset_bytes + last.size_bytes - first.offset_bytes;
      read_fully(*files[s.shard], first.offset_bytes, {buffer.data(), size});
      std::memcpy(rows.data() + row * payload_bytes, buffer.data(), payload_bytes);
      row = (row + 1) % (4 * batch_rows);
    }
  return 1e9 * (bench::now() - before).cpu_s / static_cast<double>(t.epochs * order.size());
}

/// 256 KiB per read, in the order of the shards.
double floor_by_blocks(const task& t, const std::vector<mr::detail::shard_index>& indexes) {
  std::vector<std::byte> rows(4 * batch_rows * payload_bytes), buffer(std::size_t{256} << 10);
  std::size_t row = 0;
  const bench::clocks before = bench::now();
  for (std::uint64_t epoch = 0; epoch < t.epochs; ++epoch)
    for (std::size_t shard = 0; shard < indexes.size(); ++shard) {
      const mr::detail::shard_index& index = indexes[shard];
      mr::file_source file(t.set.shards[shard]);
      std::uint64_t begin = 0, end = 0;   // of the bytes in the buffer
      for (std::uint32_t i = 0; i < index.samples(); ++i) {
        const auto bin = index.member(index.sample(i).first_member);
        if (bin.offset_bytes + bin.size_bytes > end) {
          begin = bin.offset_bytes;
          end = begin + read_fully(file, begin, buffer);
        }
        std::memcpy(rows.data() + row * payload_bytes, buffer.data() + (bin.offset_bytes - begin), payload_bytes);
        row = (row + 1) % (4 * batch_rows);
      }
    }
  return 1e9 * (bench::now() - before).cpu_s / static_cast<double>(t.epochs * t.set.samples);
}

constexpr std::uint32_t block_samples = 73;   // of 3,584 bytes each in the archive, in 256 KiB

/// 256 KiB of a shard, which stay in memory until their last sample is used.
struct shard_block {
  std::unique_ptr<std::byte[]> buffer{};
  std::uint64_t begin = 0;
  std::uint32_t left = 0;
};

/// The blocks of all shards. Each is read when its first sample is used, and then all its payloads are verified.
class window_of_blocks {
 public:
  window_of_blocks(const task& t, const std::vector<mr::detail::shard_index>& indexes)
      : indexes_(indexes), files_(files_of(t.set)), blocks_(indexes.size()) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].resize(indexes[i].samples() / block_samples + 1);
  }

  /// Returns the payload of a sample whose block is in memory.
  const std::byte* payload_of(const mr::detail::located_sample& s) {
    const shard_block& from = block_of(s);
    return from.buffer.get() + (bin_of(s.shard, s.index).offset_bytes - from.begin);
  }
  /// Returns the block of a sample, and reads it if it is not in memory.
  shard_block& ready(const mr::detail::located_sample& s) {
    shard_block& from = block_of(s);
    if (from.left == 0) read(s, from);
    return from;
  }
  /// Recycles the memory of a block that no sample needs any more.
  void recycle(std::unique_ptr<std::byte[]> memory) { spare_.push_back(std::move(memory)); }
  /// Uses the checksums, so that they are computed.
  void use_checksums() const {
    if (checksums_ == 1) std::printf("never\n");
  }

 private:
  shard_block& block_of(const mr::detail::located_sample& s) { return blocks_[s.shard][s.index / block_samples]; }
  void read(const mr::detail::located_sample& s, shard_block& from) {
    const mr::detail::shard_index& index = indexes_[s.shard];
    const auto first = static_cast<std::uint32_t>(s.index / block_samples * block_samples);
    const std::uint32_t end = std::min(first + block_samples, index.samples());
    if (spare_.empty()) recycle(std::make_unique<std::byte[]>(std::size_t{256} << 10));
    from = {.buffer = std::move(spare_.back()), .begin = bin_of(s.shard, first).offset_bytes, .left = end - first};
    spare_.pop_back();
    const auto last = index.member(index.sample(end - 1).end_member - 1);
    const std::size_t size = last.offset_bytes + last.size_bytes - from.begin;
    read_fully(*files_[s.shard], from.begin, {from.buffer.get(), size});
    for (std::uint32_t i = first; i < end; ++i)
      checksums_ ^= mr::crc32c({from.buffer.get() + (bin_of(s.shard, i).offset_bytes - from.begin), payload_bytes});
  }

  mr::detail::indexed_member bin_of(std::size_t shard, std::uint64_t sample) const {
    const mr::detail::shard_index& index = indexes_[shard];
    return index.member(index.sample(static_cast<std::uint32_t>(sample)).first_member);
  }

  const std::vector<mr::detail::shard_index>& indexes_;
  const std::vector<std::unique_ptr<mr::file_source>> files_;
  std::vector<std::vector<shard_block>> blocks_;
  std::vector<std::unique_ptr<std::byte[]>> spare_;
  std::uint32_t checksums_ = 0;
};

/// The minimal work of a reader that retains a window of samples: in the plan's order, from blocks of 256 KiB that stay
/// in memory until their last sample is used, with the checksum of each payload.
double floor_by_window(const task& t, const std::vector<mr::detail::shard_index>& indexes) {
  window_of_blocks blocks(t, indexes);
  const auto order = order_of(indexes);
  std::vector<std::byte> rows(4 * batch_rows * payload_bytes);
  std::size_t row = 0;
  const bench::clocks before = bench::now();
  for (std::uint64_t epoch = 0; epoch < t.epochs; ++epoch)
    for (const auto& s : order) {
      shard_block& from = blocks.ready(s);
      std::memcpy(rows.data() + row * payload_bytes, blocks.payload_of(s), payload_bytes);
      row = (row + 1) % (4 * batch_rows);
      if (--from.left == 0) blocks.recycle(std::move(from.buffer));
    }
  blocks.use_checksums();
  return 1e9 * (bench::now() - before).cpu_s / static_cast<double>(t.epochs * order.size());
}

/// The same on two threads: one reads the blocks, another copies the payloads to rows, up to four batches later.
/// Therefore each payload moves from core to core, as in a session.
double floor_by_two_threads(const task& t, const std::vector<mr::detail::shard_index>& indexes) {
  window_of_blocks blocks(t, indexes);
  const auto order = order_of(indexes);
  const std::size_t batches = order.size() / batch_rows;
  std::vector<std::vector<std::unique_ptr<std::byte[]>>> unused_memory(4);   // by the last copied batches
  std::vector<std::vector<const std::byte*>> payloads(4, std::vector<const std::byte*>(batch_rows));
  std::counting_semaphore<4> free_batches(4), full_batches(0);
  const bench::clocks before = bench::now();
  std::thread copies([&] {
    std::vector<std::byte> rows(4 * batch_rows * payload_bytes);
    for (std::uint64_t b = 0; b < t.epochs * batches; ++b) {
      full_batches.acquire();
      for (std::size_t i = 0; i < batch_rows; ++i)
        std::memcpy(rows.data() + (b % 4 * batch_rows + i) * payload_bytes, payloads[b % 4][i], payload_bytes);
      free_batches.release();
    }
  });
  for (std::uint64_t b = 0; b < t.epochs * batches; ++b) {
    free_batches.acquire();
    for (auto& memory : unused_memory[b % 4]) blocks.recycle(std::move(memory));
    unused_memory[b % 4].clear();
    for (std::size_t i = 0; i < batch_rows; ++i) {
      const auto& s = order[b % batches * batch_rows + i];
      shard_block& from = blocks.ready(s);
      payloads[b % 4][i] = blocks.payload_of(s);
      if (--from.left == 0) unused_memory[b % 4].push_back(std::move(from.buffer));
    }
    full_batches.release();
  }
  copies.join();
  blocks.use_checksums();
  return 1e9 * (bench::now() - before).cpu_s / static_cast<double>(t.epochs * order.size());
}

/// The checksums of a sample in the cache.
double floor_of_checksums() {
  const std::vector<std::byte> payload(payload_bytes, std::byte{5}), label(3, std::byte{'5'});
  constexpr std::size_t times = 1'000'000;
  std::uint32_t sum = 0;
  const bench::clocks before = bench::now();
  for (std::size_t i = 0; i < times; ++i) sum ^= mr::crc32c(payload, sum) ^ mr::crc32c(label, sum);
  const double ns = 1e9 * (bench::now() - before).cpu_s / static_cast<double>(times);
  if (sum == 1) std::printf("never\n");   // keeps the computation
  return ns;
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "small");
    const auto set = bench::make_tar_set({.name = "small", .shards = 16, .samples = 8192, .payload_bytes = 2048});
    const task t{.set = set, .epochs = run.quick() ? 4U : 8U};
    const auto indexes = indexes_of(set);

    struct series {
      std::vector<double> ns{};
      std::map<std::string, std::vector<double>> thread_ns{};
      void add(const outcome& o) {
        ns.push_back(o.ns);
        for (const auto& [name, each] : o.thread_ns) thread_ns[name].push_back(each);
      }
    };
    series indexed, arrays, plain;
    std::vector<double> by_samples, by_blocks, by_window, by_two_threads, checksums;
    checksum indexed_sum, plain_sum;
    for (int round = 0; round < (run.quick() ? 5 : 9); ++round) {
      if (run.wants("index") || run.wants("of_floor")) {
        const outcome o = run_session(t, mr::shards(set.folder, {.seed = seed}), prepare);
        indexed.add(o);
        indexed_sum = o.sum;
      }
      if (run.wants("array"))
        arrays.add(run_session<array_example>(t, mr::shards(set.folder, {.seed = seed}), prepare_array));
      if (run.wants("plain")) {
        const outcome o = run_session({.set = set, .epochs = 1},
                                      mr::shards(set.folder, {.seed = seed, .index = mr::index::off}), prepare);
        plain.add(o);
        plain_sum = {t.epochs * o.sum.bytes, t.epochs * o.sum.labels};
      }
      if (run.wants("floor") || run.wants("of_floor")) {
        by_samples.push_back(floor_by_samples(t, indexes));
        by_blocks.push_back(floor_by_blocks(t, indexes));
        by_window.push_back(floor_by_window(t, indexes));
        by_two_threads.push_back(floor_by_two_threads(t, indexes));
        checksums.push_back(floor_of_checksums());
      }
    }
    std::printf("\n2,048-byte records and labels, batch %zu, window %zu, one worker (CPU ns per sample)\n", batch_rows,
                window);
    const auto show = [](const char* what, const series& s) {
      if (s.ns.empty()) return;
      std::printf("  %-28s %s", what, bench::spread(s.ns, "%.0f").c_str());
      for (const auto& [name, ns] : s.thread_ns) std::printf("; %s %.0f", name.c_str(), bench::median(ns));
      std::printf("\n");
    };
    show("with an index, shuffled:", indexed);
    show("the same, arrays:", arrays);
    show("without one, shuffled:", plain);
    show("floor, one read per sample:", {by_samples, {}});
    show("floor, 256 KiB per read:", {by_blocks, {}});
    show("floor, window and checksums:", {by_window, {}});
    show("the same, on two threads:", {by_two_threads, {}});
    show("checksums, in the cache:", {checksums, {}});
    if (!indexed.ns.empty() && !plain.ns.empty() && !(indexed_sum == plain_sum))
      throw mr::setup_error("the samples differ with and without an index", "Compare their rows");
    const auto per_second = [](const series& s) { return 1e9 / bench::median(s.ns); };
    if (!indexed.ns.empty())
      run.result("small_indexed", per_second(indexed), "samples/cpu-s", bench::at_least(1'000'000));
    if (!indexed.ns.empty() && !by_window.empty())
      run.result("small_indexed_of_floor", bench::median(by_window) / bench::median(indexed.ns),
                 "of small_floor_window", bench::at_least(0.7));
    if (!indexed.ns.empty() && !by_two_threads.empty())
      run.result("small_indexed_of_two_threads", bench::median(by_two_threads) / bench::median(indexed.ns),
                 "of small_floor_two_threads");
    if (!arrays.ns.empty()) run.result("small_indexed_arrays", per_second(arrays), "samples/cpu-s");
    if (!plain.ns.empty()) run.result("small_plain", per_second(plain), "samples/cpu-s", bench::at_least(150'000));
    if (run.wants("replace")) {
      const auto ns_with = [&](mr::damage policy) {
        return run_session(t, mr::shards(set.folder, {.seed = seed}), prepare, {.policy = policy}).ns;
      };
      run.result("small_replace_at_most",
                 bench::compare_in_pairs(
                     "damage replaced against an error, clean data", run.quick() ? 6 : 20,
                     [&] { return ns_with(mr::damage::replace); }, [&] { return ns_with(mr::damage::fail); }),
                 "of small_indexed", bench::at_most(1.02));
    }
    if (!by_samples.empty()) {
      run.result("small_floor_read_each", bench::median(by_samples), "ns/sample");
      run.result("small_floor_read_256KiB", bench::median(by_blocks), "ns/sample");
      run.result("small_floor_window", bench::median(by_window), "ns/sample");
      run.result("small_floor_two_threads", bench::median(by_two_threads), "ns/sample");
      run.result("small_checksums", bench::median(checksums), "ns/sample");
    }
    return run.finish();
  });
}
