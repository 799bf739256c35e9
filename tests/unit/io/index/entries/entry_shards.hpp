// Shards whose index has toy entry points, and their readers.
#pragma once

#include <millrace/base/crc32c.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/index/set/shard_data.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/measure/values/event_names.hpp>

#include "../../tar_bytes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace entry_test {

namespace mr = millrace;
using namespace tar_test;

/// Entries of every field "jpg" except those of 7 bytes: a text that depends on each byte of the payload.
inline std::vector<std::byte> entries_for(std::string_view field, std::span<const std::byte> payload) {
  if (field != "jpg" || payload.size() == 7) return {};
  const std::string text = std::to_string(100'000'000 + mr::crc32c(payload) % 900'000'000).substr(1) +
                           std::string(payload.size() % 50, 'e');
  const auto bytes = mr::detail::bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string entries_text(const mr::bytes& field) {
  const auto entries = field.entries();
  return {reinterpret_cast<const char*>(entries.data()), entries.size()};
}

inline std::string expected_entries(const mr::bytes& field) {
  const auto entries = entries_for(field.name(), field);
  return {reinterpret_cast<const char*>(entries.data()), entries.size()};
}

/// Samples of several sizes; one "jpg" of 7 bytes, and some payloads too short for their entries.
inline std::vector<std::string> write_shards(const temporary_folder& f, std::size_t shards, std::size_t samples) {
  mr::shard_writer writer({.pattern = f / "s-%d.tar", .max_samples = samples});
  mr::rng random({.seed = 5});
  for (std::size_t i = 0; i < shards * samples; ++i) {
    const std::size_t size = i % 9 == 4 ? 7 : i % 11 == 3 ? 9 : 100 + random.below(3'000);
    std::string jpg(size, '\0');
    for (char& c : jpg) c = static_cast<char>(random.below(256));
    writer.write("k" + std::to_string(i), {{"cls", std::to_string(i)}, {"jpg", jpg}, {"txt", std::string(i % 5, 't')}});
  }
  writer.close();
  std::vector<std::string> names;
  for (std::size_t s = 0; s < shards; ++s) names.push_back(f / ("s-" + std::to_string(s) + ".tar"));
  return names;
}

inline mr::detail::shard_indexes make(const std::vector<std::string>& shards, mr::detail::index_build_options o = {}) {
  o.entries = entries_for;
  return mr::detail::build_indexes(shards, o);
}

inline bool has_some(const mr::bytes& field) {
  return !expected_entries(field).empty() && expected_entries(field).size() <= field.size();
}

/// Reads all samples in lists in a random order; verifies the entries. Returns the number of fields with entries.
inline std::size_t read_in_lists(mr::detail::indexed_reader& reader, std::uint32_t samples, bool all,
                                 std::uint64_t seed) {
  mr::rng random({.seed = seed});
  std::size_t with_entries = 0;
  for (std::uint32_t done = 0; done < samples;) {
    std::vector<std::uint32_t> numbers(1 + random.below(20));
    for (auto& n : numbers) n = random.below(3) == 0 ? static_cast<std::uint32_t>(random.below(samples))
                                                     : std::min(samples - 1, done++);
    std::vector<mr::record> records(numbers.size());
    REQUIRE(reader.read(numbers, records) == numbers.size());
    for (const mr::record& r : records)
      for (const mr::bytes& field : r.fields()) {
        const std::string got = entries_text(field);
        with_entries += !got.empty();
        if (!got.empty() || all) CHECK(got == (has_some(field) ? expected_entries(field) : ""));
      }
  }
  return with_entries;
}

inline std::uint64_t count_of(const mr::detail::shard_data& data, mr::detail::event_name name) {
  mr::event_counts counts;
  data.report_reads(counts);
  for (const auto& c : counts.counts())
    if (mr::detail::event_of_text(c.what) == name) return c.times;
  return 0;
}

/// Reads everything of a data set, and verifies the entries. Returns the number of fields with entries.
inline std::uint64_t read_all(mr::detail::shard_data& data) {
  std::uint64_t with_entries = 0;
  for (std::size_t shard = 0; shard < data.counts().size(); ++shard)
    for (std::uint64_t first = 0; first < data.counts()[shard]; first += 16) {
      std::vector<mr::detail::located_sample> positions;
      for (std::uint64_t n = first; n < std::min(first + 16, data.counts()[shard]); ++n)
        positions.push_back({shard, n ^ (n + 1 < data.counts()[shard] || n % 2 == 1 ? 1U : 0U)});
      std::vector<mr::record> records(positions.size());
      std::exception_ptr failure;
      const std::size_t good = data.read(positions, records, failure);
      if (good < positions.size()) std::rethrow_exception(failure);
      for (const mr::record& r : records) {
        const std::string got = entries_text(r["jpg"]);
        if (!got.empty()) CHECK(got == expected_entries(r["jpg"]));
        with_entries += !got.empty();
      }
    }
  return with_entries;
}


}  // namespace entry_test
