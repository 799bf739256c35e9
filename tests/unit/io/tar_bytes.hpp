// Tar archives built by the tests, sources that fail on demand, and a reader that keeps everything: for the tests of
// this folder. Nothing here depends on the library's own writer.
#pragma once

#include "../../temporary_folder.hpp"

#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/io/index/read/indexed_reader.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace tar_test {

namespace mr = millrace;

struct header {
  std::string name{};
  std::uint64_t size_bytes = 0;
  char type = '0';
  std::string link{}, prefix{};
  std::string raw_size{};        // 12 bytes that replace the size field
  std::string magic = std::string("ustar\00000", 8);
};

inline void put_checksum(std::string& tar, std::size_t at) {
  tar.replace(at + 148, 8, 8, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[at + i]);
  char text[16];
  std::snprintf(text, sizeof text, "%06o", sum);
  tar.replace(at + 148, 7, text, 7);
}

inline std::string octal(std::uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

inline std::string block(const header& h) {
  std::string b(512, '\0');
  b.replace(0, std::min<std::size_t>(100, h.name.size()), h.name.substr(0, 100));
  b.replace(100, 7, "0000644");
  b.replace(108, 7, "0000000");
  b.replace(116, 7, "0000000");
  b.replace(124, 11, octal(h.size_bytes, 11));
  b.replace(136, 11, "00000000000");
  b[156] = h.type;
  b.replace(157, h.link.size(), h.link);
  b.replace(257, 8, h.magic);
  b.replace(329, 7, "0000000");
  b.replace(337, 7, "0000000");
  b.replace(345, h.prefix.size(), h.prefix);
  if (!h.raw_size.empty()) b.replace(124, 12, h.raw_size);
  put_checksum(b, 0);
  return b;
}

inline std::string padded(std::string_view data) {
  std::string out(data);
  out.append((512 - out.size() % 512) % 512, '\0');
  return out;
}

inline std::string file(const std::string& name, std::string_view data) {
  return block({.name = name, .size_bytes = data.size()}) + padded(data);
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  std::size_t length = key.size() + value.size() + 4;
  while (std::to_string(length).size() + key.size() + value.size() + 3 != length) ++length;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}
inline std::string pax(const std::string& records, char type = 'x') {
  return block({.name = "PaxHeaders/x", .size_bytes = records.size(), .type = type}) + padded(records);
}
/// As Python's tarfile writes members with a fractional time.
inline std::string pax_file(const std::string& name, std::string_view data) {
  return pax(pax_record("mtime", "1700000000.1234567")) + file(name, data);
}
inline std::string gnu_long_name(const std::string& name, std::string_view data) {
  const std::string with_end = name + '\0';
  const std::string gnu("ustar  \0", 8);
  return block({.name = "././@LongLink", .size_bytes = with_end.size(), .type = 'L', .magic = gnu}) +
         padded(with_end) + block({.name = name.substr(0, 99), .size_bytes = data.size(), .magic = gnu}) + padded(data);
}

/// One piece of data: its offset in the stored file, its bytes, and the size of that file.
struct sparse_map {
  std::uint64_t at = 0, stored = 0, size = 0;
};
/// The header of a member in the old GNU sparse format.
inline std::string sparse_block(header h, const sparse_map& map) {
  h.magic = std::string("ustar  \0", 8);
  std::string b = block(h);
  b.replace(386, 11, octal(map.at, 11));
  b.replace(398, 11, octal(map.stored, 11));
  b.replace(483, 11, octal(map.size, 11));
  put_checksum(b, 0);
  return b;
}

inline std::string end_marker() { return std::string(1024, '\0'); }

/// Three samples of two fields: a, b, c with .cls and .jpg; 6 members.
struct small_shard {
  std::vector<std::string> members;
  explicit small_shard(std::string (*make)(const std::string&, std::string_view) = file) {
    for (const char* key : {"a", "b", "c"}) {
      members.push_back(make(std::string(key) + ".cls", std::string("label ") + key));
      members.push_back(make(std::string(key) + ".jpg", std::string(700, key[0])));
    }
  }
  std::size_t offset_of(std::size_t index) const {
    std::size_t at = 0;
    for (std::size_t i = 0; i < index; ++i) at += members[i].size();
    return at;
  }
  std::string bytes() const {
    std::string all;
    for (const auto& m : members) all += m;
    return all + end_marker();
  }
};

/// `count` samples of mixed sizes, some larger than a read.
inline std::string mixed_shard(std::size_t count) {
  std::string tar;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = "k" + std::to_string(i);
    tar += file(key + ".cls", std::to_string(i));
    tar += file(key + ".bin", std::string(i % 7 == 3 ? 70'000 : 100 * (i % 13), static_cast<char>('a' + i % 26)));
    if (i % 3 == 0) tar += file(key + ".json", "{}");
  }
  return tar + end_marker();
}

/// Bytes in memory that arrive in small pieces, and that fail on request.
class memory_source : public mr::byte_source {
 public:
  struct faults {
    std::size_t max_bytes_per_read = ~std::size_t{0};
    std::uint64_t fail_at = ~std::uint64_t{0};
    bool in_parts = false;   // reads into many parts at once
  };
  explicit memory_source(std::string data) : memory_source(std::move(data), faults()) {}
  memory_source(std::string data, faults f) : data_(std::move(data)), faults_(f) {}

  std::string_view name() const noexcept override { return "memory.tar"; }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    if (offset_bytes >= data_.size()) return 0;
    const std::size_t at = static_cast<std::size_t>(offset_bytes);
    std::size_t count = std::min({buffer.size(), data_.size() - at, faults_.max_bytes_per_read});
    if (at + count > faults_.fail_at) {
      if (at >= faults_.fail_at)
        throw mr::io_error("the disk is broken", "", {.shard = "memory.tar", .offset_bytes = offset_bytes});
      count = static_cast<std::size_t>(faults_.fail_at) - at;
    }
    std::memcpy(buffer.data(), data_.data() + at, count);
    return count;
  }
  std::size_t read_parts(std::uint64_t offset_bytes, std::span<const std::span<std::byte>> parts) override {
    if (!faults_.in_parts) return byte_source::read_parts(offset_bytes, parts);
    std::size_t requested = 0, filled = 0;
    for (const auto& part : parts) requested += part.size();
    std::vector<std::byte> all(requested);
    const std::size_t got = read_at(offset_bytes, all);
    for (const auto& part : parts) {
      const std::size_t count = std::min(part.size(), got - filled);
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(filled), count, part.begin());
      filled += count;
    }
    return got;
  }
  bool reads_parts() const noexcept override { return faults_.in_parts; }

 private:
  std::string data_;
  faults faults_;
};

struct outcome {
  std::vector<std::string> samples;   // "key: field=value field=value", values longer than 20 as their length
  std::vector<std::uint64_t> offsets;
  std::string error;                  // "data", "io" or empty
  std::string message;
  mr::error_location where;
  mr::shard_counters counters;

  bool operator==(const outcome& o) const {
    return samples == o.samples && error == o.error && message == o.message && offsets == o.offsets;
  }
};

inline std::string fields_text(const mr::record& r) {
  std::string text = std::string(r.key()) + ":";
  for (const auto& f : r.fields()) {
    const std::string_view value = f.text();
    const bool same = std::all_of(value.begin(), value.end(), [&](char c) { return c == value.front(); });
    text += " " + std::string(f.name()) + "=";
    text += value.size() <= 20 ? std::string(value)
                               : std::to_string(value.size()) + (same ? std::string(1, value.front()) : "?");
  }
  return text;
}

/// One pool for all readers of a test program: some tests create ten thousand readers.
inline mr::block_pool& shared_pool() {
  static mr::block_pool pool;
  return pool;
}

inline outcome read_source(std::unique_ptr<mr::byte_source> source, mr::shard_reader_options options = {}) {
  outcome result;
  mr::block_pool& pool = shared_pool();
  std::unique_ptr<mr::shard_reader> reader;
  const auto failed = [&](const char* kind, const mr::error& e) {
    result.error = kind;
    result.message = e.message();
    result.where = e.where();
  };
  try {
    reader = std::make_unique<mr::shard_reader>(std::move(source), pool, std::move(options));
    while (const auto record = reader->next()) {
      result.samples.push_back(fields_text(*record));
      result.offsets.push_back(record->offset_bytes());
    }
    if (reader->next()) result.error = "a sample after the end";
  } catch (const mr::data_error& e) {
    failed("data", e);
  } catch (const mr::io_error& e) {
    failed("io", e);
  }
  if (reader) result.counters = reader->counters();
  if (reader && !result.error.empty() && !reader->can_continue()) {
    try {
      (void)reader->next();
      result.error += ", then none";
    } catch (const mr::error& e) {
      if (e.message() != result.message) result.error += ", then another";
    }
  }
  return result;
}

/// The same through an index of the shard; all samples are requested at once. Nothing for a compressed shard.
inline std::optional<outcome> read_by_index(mr::byte_source& source, const mr::shard_reader_options& options) {
  outcome result;
  try {
    mr::detail::shard_index index = mr::detail::scan_shard(source, shared_pool());
    if (index.state() == mr::detail::shard_index::shard_state::compressed) return std::nullopt;
    result.counters = index.facts().counters;
    mr::detail::indexed_reader reader(source, index, shared_pool(),
                              {.fields = options.fields, .limits = options.limits});
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < index.samples(); ++i) numbers.push_back(i);
    std::vector<mr::record> records(numbers.size());
    const std::size_t good = reader.read(numbers, records);
    for (std::size_t i = 0; i < good; ++i) {
      result.samples.push_back(fields_text(records[i]));
      result.offsets.push_back(records[i].offset_bytes());
    }
    if (good < numbers.size()) std::rethrow_exception(reader.failure());
    if (index.state() == mr::detail::shard_index::shard_state::damaged) reader.throw_damage();
  } catch (const mr::data_error& e) {
    result.error = "data";
    result.message = e.message();
    result.where = e.where();
  }
  return result;
}

/// The difference between the results of an index and of shard_reader; empty if there is none.
inline std::string difference(const outcome& expected, const outcome& indexed) {
  const auto text = [](const outcome& o) {
    return std::to_string(o.samples.size()) + " samples, then '" + o.error + "' at " +
           std::to_string(o.where.offset_bytes) + ": " + o.message;
  };
  const auto passed_over = [](const mr::shard_counters& c) {
    return std::vector{c.metadata_members, c.dot_files, c.names_without_dot, c.not_regular, c.unconverted_names,
                       c.missing_end_markers};
  };
  if (!(expected == indexed) || expected.where.offset_bytes != indexed.where.offset_bytes)
    return "; by index: " + text(indexed) + "; by shard_reader: " + text(expected);
  return expected.error.empty() && passed_over(expected.counters) != passed_over(indexed.counters)
             ? "; by index other members are passed over" : "";
}

/// Every archive of every test is read in all three ways: a difference is an error.
inline outcome read_tar(std::string tar, mr::shard_reader_options options = {}) {
  memory_source source(tar), in_parts(tar, {.in_parts = true});
  outcome o = read_source(std::make_unique<memory_source>(std::move(tar)), options);
  for (memory_source* each : {&source, &in_parts})
    if (const auto indexed = read_by_index(*each, options)) o.error += difference(o, *indexed);
  return o;
}

inline void save(const std::string& path, std::string_view data) {
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
}
inline std::string load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

inline bool have(const std::string& tool) {
  return std::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
}

/// `data` through a program such as "gzip -c", which must be installed.
inline std::string through(const std::string& command, std::string_view data) {
  const temporary_folder folder;
  save(folder / "in", data);
  if (std::system((command + " < " + (folder / "in") + " > " + (folder / "out") + " 2>/dev/null").c_str()) != 0)
    throw std::runtime_error(command + " failed");
  return load(folder / "out");
}

}  // namespace tar_test
