// index: speed of scanning shards and of reading samples with an index; the cost of checksums
//
//   sh bench/run.sh index [--quick]
//
// All files are in the page cache, so the disk does not matter. Three data sets are generated once: one large shard of
// 110,000-byte payloads, one of 2,048-byte payloads, and 1,281 shards of 1,000 samples of 8 bytes.
#include "harness.hpp"
#include "tar_sets.hpp"

#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/io/tar/format/header_window.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace mr = millrace;

namespace {

template <class Work>
std::vector<bench::clocks> times_of(std::size_t count, const Work& work) {
  std::vector<bench::clocks> times;
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = bench::now();
    work();
    times.push_back(bench::now() - before);
  }
  return times;
}
double median_wall(const std::vector<bench::clocks>& times) {
  std::vector<double> values;
  for (const auto& t : times) values.push_back(t.wall_s);
  return bench::median(values);
}
double median_cpu(const std::vector<bench::clocks>& times) {
  std::vector<double> values;
  for (const auto& t : times) values.push_back(t.cpu_s);
  return bench::median(values);
}

void remove_indexes(const bench::tar_set& set) {
  for (const auto& shard : set.shards) std::filesystem::remove(mr::detail::index_path(shard));
}

/// Scans the shards repeatedly on one thread.
void measure_scan(bench::harness& run, const bench::tar_set& set, const std::string& name) {
  mr::block_pool pool;
  std::uint64_t members = 0;
  std::vector<mr::detail::shard_index> indexes;
  for (const auto& shard : set.shards) {
    mr::file_source source(shard);
    indexes.push_back(mr::detail::scan_shard(source, pool));
  }
  // Reads the same headers without parsing them: nearly all of this time is spent in the kernel.
  std::uint64_t sum = 0;
  const auto read_headers = [&] {
    for (std::size_t s = 0; s < indexes.size(); ++s) {
      mr::file_source source(set.shards[s]);
      mr::detail::header_window window(source, pool);
      for (std::uint32_t m = 0; m < indexes[s].members(); ++m) {
        const auto member = indexes[s].member(m);
        sum += static_cast<std::uint64_t>(window.at(member.offset_bytes - 512, 512)[0]);
        window.payload_follows(member.size_bytes);
      }
    }
  };
  const auto times = times_of(run.quick() ? 3 : 7, [&] {
    members = 0;
    for (const auto& shard : set.shards) {
      mr::file_source source(shard);
      members += mr::detail::scan_shard(source, pool).members();
    }
  });
  const auto header_times = times_of(run.quick() ? 3 : 7, read_headers);
  if (sum == 1) std::printf("never\n");   // keeps the reads
  run.result("scan of " + name + ": share of reading the headers", 100 * median_cpu(header_times) / median_cpu(times),
             "%");
  run.result("scan of " + name, static_cast<double>(set.bytes) * 1e-9 / median_cpu(times), "GB/cpu-s");
  run.result("scan of " + name + ": headers", static_cast<double>(members) * 1e-6 / median_cpu(times), "million/cpu-s");
}

void measure_reading(bench::harness& run, const bench::tar_set& set, std::size_t rounds) {
  mr::block_pool pool;
  mr::file_source source(set.shards.front());
  mr::detail::shard_index index = mr::detail::scan_shard(source, pool);
  const double samples = index.samples();
  const auto in_order = times_of(rounds, [&] {
    mr::shard_reader reader(std::make_unique<mr::file_source>(set.shards.front()), pool);
    while (reader.next()) {}
  });
  run.result("2,048-byte samples by shard_reader", samples / median_cpu(in_order), "samples/cpu-s");
  struct shape {
    std::string name;
    bool shuffled;
    std::size_t at_once;
  };
  for (const shape& how : {shape{"in order, 256 at once", false, 256},
                           {"shuffled, 256 at once", true, 256},
                           {"shuffled, 8192 at once", true, 8192}}) {
    for (const bool checksums : {true, false}) {
      mr::detail::indexed_reader reader(source, index, pool, {.checksums = checksums});
      std::vector<std::uint32_t> numbers(index.samples());
      for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
      mr::rng random({.seed = 2});
      constexpr std::size_t window = 8192;
      if (how.shuffled)
        for (std::size_t i = numbers.size(); i-- > 1;)
          std::swap(numbers[i], numbers[i - std::min<std::size_t>(i, random.below(window))]);
      const std::size_t batch = how.at_once;
      std::vector<mr::record> records(batch);
      const auto times = times_of(rounds, [&] {
        for (std::size_t at = 0; at < numbers.size(); at += batch) {
          const auto part = std::span(numbers).subspan(at, std::min(batch, numbers.size() - at));
          if (reader.read(part, std::span(records).first(part.size())) != part.size())
            std::rethrow_exception(reader.failure());
        }
      });
      run.result("2,048-byte samples by index, " + how.name + (checksums ? ", checked" : ", unchecked"),
                 samples / median_cpu(times), "samples/cpu-s");
    }
  }
}

void measure_many(bench::harness& run, const bench::tar_set& set) {
  for (const unsigned threads : {1U, 2U}) {
    const std::string with = ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    std::vector<double> builds, loads;
    for (int i = 0; i < 3; ++i) {
      remove_indexes(set);
      const auto build = times_of(1, [&] { (void)mr::detail::build_indexes(set.shards, {.threads = threads}); });
      builds.push_back(build[0].wall_s);
      const auto load = times_of(3, [&] { (void)mr::detail::build_indexes(set.shards, {.threads = threads}); });
      loads.push_back(median_wall(load));
    }
    const std::string shards = std::to_string(set.shards.size()) + " shards";
    run.result("build and keep indexes of " + shards + with, 1e3 * bench::median(builds), "ms");
    run.result("load indexes of " + shards + with, 1e3 * bench::median(loads), "ms");
  }
  for (const unsigned threads : {1U, 2U}) {
    const auto heads = times_of(
        5, [&] { (void)mr::detail::build_indexes(set.shards, {.heads_only = true, .threads = threads}); });
    run.result("read the heads of their indexes, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
               1e3 * median_wall(heads), "ms");
  }
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "index");
  const std::size_t scale = run.quick() ? 10 : 1;
  std::vector<std::byte> data(std::size_t{1} << 20, std::byte{5});
  for (const std::size_t size : {std::size_t{2048}, std::size_t{110'000}}) {
    std::uint32_t sum = 0;
    const std::size_t rounds = 400'000'000 / size;
    const auto times = times_of(5, [&] {
      for (std::size_t i = 0; i < rounds; ++i) sum ^= mr::crc32c(std::span(data).subspan(sum & 1023, size));
    });
    run.result("CRC-32C of " + std::to_string(size) + " bytes",
               static_cast<double>(rounds * size) * 1e-9 / median_cpu(times), "GB/s");
  }
  const auto photos = bench::make_tar_set(
      {.name = "index-photos", .shards = 1, .samples = 10'000 / scale, .payload_bytes = 110'000});
  measure_scan(run, photos, "110,000-byte payloads");
  const auto small = bench::make_tar_set(
      {.name = "index-small", .shards = 1, .samples = 200'000 / scale, .payload_bytes = 2'048});
  measure_scan(run, small, "2,048-byte payloads");
  measure_reading(run, small, run.quick() ? 3 : 7);
  const auto tiny = bench::make_tar_set(
      {.name = "tiny", .shards = 1'281 / scale, .samples = 1'000, .payload_bytes = 8, .label = false});
  measure_scan(run, tiny, "8-byte payloads");
  measure_many(run, tiny);
  return run.finish();
}
