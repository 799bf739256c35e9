// Files that are replaced atomically: shards, resume points, indexes with their checksums, reports.
#include "../../unit/io/cache/distant_files.hpp"
#include "kills_subject.hpp"

#include <millrace/io/cache/cached_storage.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/index/format/set_index.hpp>
#include <millrace/io/index/set/index_build.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/report/print/json_report.hpp>
#include <millrace/report/print/html_report.hpp>
#include <millrace/report/print/text_report.hpp>
#include <millrace/report/print/write_reports.hpp>
#include <millrace/report/saved_predictions.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/sources/prepare/write_set_index.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace mr = millrace;

namespace {

constexpr std::uint64_t samples_of_shard = 3, max_bytes = 200'000;

void write_shards(const records& range) {
  mr::shard_writer shards({.pattern = range.folder + "/s-%06d.tar", .max_samples = samples_of_shard,
                           .first_number = range.first});
  for (std::uint64_t shard = range.first; shard < range.first + range.count; ++shard)
    for (std::uint64_t i = 0; i < samples_of_shard; ++i) {
      const std::uint64_t n = shard * samples_of_shard + i;
      shards.write("k" + std::to_string(n), {{"txt", long_text(n, max_bytes)}});
      if (i == 0 && shard > range.first) acknowledge(shard - 1);   // a write completes the previous shard
    }
  shards.close();
  acknowledge(range.first + range.count - 1);
}

std::uint64_t check_shards(const std::string& folder, std::uint64_t acknowledged) {
  if (!std::filesystem::exists(folder + "/s-000000.tar")) return 0;
  const auto listed = mr::list_shards(folder + "/*.tar");
  if (mr::list_shards(folder) != listed) wrong("a folder and a pattern list different shards");
  mr::block_pool pool;
  std::uint64_t n = 0;
  for (const std::string& path : listed) {
    mr::shard_reader shard(std::make_unique<mr::file_source>(path), pool, {.strict = true});
    while (const auto record = shard.next()) {
      if (mr::text((*record)["txt"]) != long_text(n, max_bytes)) wrong(path + " contains another sample");
      if (++n % samples_of_shard == 0 && shard.next()) wrong(path + " contains an extra sample");
    }
    if (n % samples_of_shard != 0) wrong(path + " is half a shard");
  }
  if (n / samples_of_shard > acknowledged + 1) wrong("more than one shard without acknowledgment");
  return n / samples_of_shard;
}

void write_notes(const records& range) {
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    mr::atomic_file file(range.folder + "/saved");
    file.append(long_text(n, 3'000'000));
    file.commit();
    acknowledge(n);
  }
}

std::uint64_t check_notes(const std::string& folder, std::uint64_t acknowledged) {
  const std::string text = content_of(folder + "/saved");
  for (const std::uint64_t done : {acknowledged, acknowledged + 1})
    if (done == 0 ? !std::filesystem::exists(folder + "/saved") : text == long_text(done - 1, 3'000'000)) return done;
  wrong("the resume point is neither the last acknowledged one nor the next one");
}

std::vector<std::string> data_of(const std::string& folder) { return mr::list_shards(folder + "/*.tar"); }

/// Every record changes the time of a shard, so its index must be built again.
void write_indexes(const records& range) {
  const auto shards = data_of(range.folder);
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    const std::string& path = shards[n % shards.size()];
    const timespec time{.tv_sec = static_cast<time_t>(1'700'000'000 + n), .tv_nsec = 0};
    const timespec times[] = {time, time};
    if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) wrong("cannot set a shard's time");
    const auto built = mr::detail::build_indexes({&path, 1});
    if (built.counts.not_stored > 0) wrong(built.store_failure);
    acknowledge(n);
  }
}

std::uint64_t check_indexes(const std::string& folder, std::uint64_t acknowledged) {
  const auto shards = data_of(folder);
  using enum mr::detail::index_file_state;
  for (std::uint64_t i = 0; i < shards.size(); ++i) {
    const auto loaded =
        mr::detail::load_index(mr::detail::index_path(shards[i]), mr::detail::identify_shard(shards[i]));
    const bool at_work = i == acknowledged % shards.size(), done = i < acknowledged;
    const bool sound = loaded.state == good ? loaded.index.samples() == 100
                                           : done ? at_work && loaded.state == touched : loaded.state == missing;
    if (!sound) wrong(shards[i] + ": " + (loaded.reason.empty() ? "its index has other content" : loaded.reason));
  }
  return acknowledged;
}

/// The checksum that reading a member would record.
std::uint32_t checksum_of(std::uint32_t member) { return member * 2'654'435'761U | 1; }

/// Every record is the checksum of a member of a shard.
void write_checksums(const records& range) {
  const auto shards = data_of(range.folder);
  mr::detail::build_indexes(shards);
  mr::detail::remove_abandoned_indexes(mr::detail::index_path(shards[0]));   // as the owner of indexes does
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    const std::string& path = shards[n % shards.size()];
    auto loaded = mr::detail::load_index(mr::detail::index_path(path), mr::detail::identify_shard(path));
    const auto member = static_cast<std::uint32_t>(n / shards.size());
    if (loaded.state != mr::detail::index_file_state::good || member >= loaded.index.members()) wrong("no such member");
    loaded.index.set_checksum(member, checksum_of(member));
    mr::detail::store_index(mr::detail::index_path(path), loaded.index);
    acknowledge(n);
  }
}

std::uint64_t check_checksums(const std::string& folder, std::uint64_t acknowledged) {
  const auto shards = data_of(folder);
  using enum mr::detail::index_file_state;
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < shards.size(); ++i) {
    const auto loaded =
        mr::detail::load_index(mr::detail::index_path(shards[i]), mr::detail::identify_shard(shards[i]));
    if (loaded.state == missing && acknowledged == 0) continue;
    if (loaded.state != good) wrong(shards[i] + ": " + loaded.reason);
    const std::uint64_t checksums = loaded.index.known_checksums();
    for (std::uint32_t m = 0; m < checksums; ++m)
      if (loaded.index.checksum(m) != checksum_of(m)) wrong(shards[i] + " has another checksum");
    if (checksums < (acknowledged + shards.size() - 1 - i) / shards.size()) wrong(shards[i] + " has lost a checksum");
    all += checksums;
  }
  if (all > acknowledged + 1) wrong("more than one checksum without acknowledgment");
  return all;
}

std::string set_index_path(const std::string& folder) { return folder + "/set.millrace-index"; }

/// Every record is a set index of the first shards, of which it needs all indexes.
void write_set_indexes(const records& range) {
  const auto shards = data_of(range.folder);
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    const std::vector<std::string> some(shards.begin(),
                                        shards.begin() + static_cast<std::ptrdiff_t>(n % shards.size() + 1));
    mr::write_set_index(some, set_index_path(range.folder), {.notice = mr::quiet});
    acknowledge(n);
  }
}

std::uint64_t check_set_indexes(const std::string& folder, std::uint64_t acknowledged) {
  const auto shards = data_of(folder);
  if (!std::filesystem::exists(set_index_path(folder))) {
    if (acknowledged > 0) wrong("the set index is missing");
    return 0;
  }
  const auto index = mr::detail::set_index::parse(content_of(set_index_path(folder)), "set.millrace-index");
  for (const mr::detail::set_index_shard& s : index.shards())
    if (s.samples != 100) wrong(s.name + " has another number of samples");
  for (const std::uint64_t done : {acknowledged, acknowledged + 1})
    if (done > 0 && index.size() == (done - 1) % shards.size() + 1) return done;
  wrong("the set index is neither the last acknowledged one nor the next one");
}

struct numbered {
  std::int32_t number;
};

/// Odd records: a session has indexes. Even records: the session ended.
void write_sessions(const records& range) {
  for (std::uint64_t n = range.first; n < range.first + range.count; n += 2) {
    for (const std::string& shard : data_of(range.folder)) std::filesystem::remove(mr::detail::index_path(shard));
    {
      mr::session run{mr::shards(range.folder + "/*.tar", {.notice = mr::quiet}) |
                          mr::map([](const mr::record& r) { return numbered{r["n"].as<std::int32_t>()}; }) |
                          mr::batch<&numbered::number>({.size = 100}),
                      {.threads = 1, .io_threads = 1, .memory_bytes = std::size_t{64} << 20, .notice = mr::quiet}};
      acknowledge(n);
      for ([[maybe_unused]] auto& b : run) {}
    }
    acknowledge(n + 1);
  }
}

std::uint64_t check_sessions(const std::string& folder, std::uint64_t acknowledged) {
  using enum mr::detail::index_file_state;
  for (const std::string& shard : data_of(folder)) {
    const auto loaded = mr::detail::load_index(mr::detail::index_path(shard), mr::detail::identify_shard(shard));
    const bool amid = acknowledged % 2 == 1;   // the session has indexes, which can only grow
    if (loaded.state != good && (amid || loaded.state != missing)) wrong(shard + ": " + loaded.reason);
    if (loaded.state == good && loaded.index.samples() != 100) wrong(shard + ": its index has other content");
  }
  return acknowledged + acknowledged % 2;   // the next run begins another session
}

mr::run_report report_of_round(std::uint64_t n) {
  mr::run_report r;
  r.title = "round " + std::to_string(n);
  r.facts.push_back({"text", long_text(n, 100'000)});
  for (std::size_t workers = 1; workers < 400; ++workers)
    r.scaling.push_back({.workers = workers, .samples_per_s = static_cast<double>(n * 1'000 + workers) / 7});
  return r;
}

void write_reports(const records& range) {
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    mr::write_reports(report_of_round(n), range.folder + "/report");
    acknowledge(n);
  }
}

std::string report_text(const std::string& ending, std::uint64_t n) {
  const mr::run_report r = report_of_round(n);
  return ending == ".txt" ? mr::text_report(r) : ending == ".json" ? mr::json_report(r)
         : ending == ".html" ? mr::html_report(r) : ending == ".trace.json" ? mr::chrome_trace(r.events)
                                                  : mr::detail::predictions_text(r);
}

std::uint64_t check_reports(const std::string& folder, std::uint64_t acknowledged) {
  for (const std::string ending : {".txt", ".json", ".html", ".trace.json", ".predictions"}) {
    const std::string path = folder + "/report" + ending, text = content_of(path);
    const bool old = acknowledged == 0 ? !std::filesystem::exists(path) : text == report_text(ending, acknowledged - 1);
    if (!old && text != report_text(ending, acknowledged)) wrong(path + " is not a complete report");
  }
  return acknowledged;
}

}  // namespace

std::span<const kind> file_kinds() {
  static constexpr kind all[] = {{"shards", 12, write_shards, check_shards, true},
                                 {"notes", 30, write_notes, check_notes, false},
                                 {"indexes", 80, write_indexes, check_indexes, true},
                                 {"checksums", 80, write_checksums, check_checksums, true},
                                 {"set_indexes", 40, write_set_indexes, check_set_indexes, true},
                                 {"sessions", 8, write_sessions, check_sessions, true},
                                 {"reports", 6, write_reports, check_reports, true}};
  return all;
}

// A cache on a disk, and its content after a kill.
namespace {

constexpr mr::detail::cache_layout layout{.block_bytes = 16384, .chunk_bytes = 4096};
constexpr std::uint64_t limit_bytes = 24 * (16384 + 4096), object_count = 20;

std::string name_of(std::uint64_t n) { return "far://" + std::to_string(n % object_count); }

std::shared_ptr<distant_files> far_away() {
  auto files = std::make_shared<distant_files>();
  for (std::uint64_t n = 0; n < object_count; ++n) files->add(name_of(n), 1 + n * 7'919'013 % 90'000);
  return files;
}

std::unique_ptr<mr::detail::cached_storage> cache_in(const std::string& folder,
                                                     const std::shared_ptr<distant_files>& below) {
  const mr::cache_options o{.folder = folder, .bytes = limit_bytes, .keep_free_share = 0,
                            .notice = [](const mr::notice& n) {
                              if (n.text.find("within its limits") == std::string::npos) std::abort();
                            }};
  return std::make_unique<mr::detail::cached_storage>(below, o, layout);
}

bool reads_right(mr::storage_interface& cache, distant_files& below, std::uint64_t n) {
  const std::string name = name_of(n);
  return read_complete(cache, name, 10'000) == below.files.at(name).text;
}

/// Two caches in one folder, like two processes that are killed at the same time.
void write_cache(const records& range) {
  const auto below = far_away();
  const auto one = cache_in(range.folder, below), two = cache_in(range.folder, below);
  std::atomic<bool> over{false}, other_right{true};
  std::thread other([&] {
    for (std::uint64_t n = range.first; !over && other_right; ++n)
      other_right = reads_right(*two, *below, n * 7 / 3);
  });
  bool right = true;
  for (std::uint64_t n = range.first; right && n < range.first + range.count; ++n) {
    right = reads_right(*one, *below, n);
    if (right) acknowledge(n);
  }
  over = true;
  other.join();
  if (!right || !other_right) wrong("a file has other bytes");
}

std::uint64_t cached_bytes(const std::string& folder, bool parts_too) {
  std::uint64_t sum = 0;
  for (const auto& entry : mr::detail::list_cache(mr::detail::cache_root(folder))) {
    sum += entry.bytes;
    if (entry.name.is_part && !parts_too) wrong(entry.path + " is left");
  }
  return sum;
}

std::uint64_t check_cache(const std::string& folder, std::uint64_t acknowledged) {
  if (cached_bytes(folder, true) > limit_bytes) wrong("a kill leaves more than the limit");
  const auto below = far_away();
  const auto cache = cache_in(folder, below);
  const std::uint64_t bytes = cached_bytes(folder, false);
  if (bytes > limit_bytes) wrong("a start leaves more than the limit");
  if (bytes == 0 && acknowledged > 0) wrong("a kill leaves nothing");
  for (std::uint64_t n = 0; n < object_count; ++n)
    if (!reads_right(*cache, *below, n)) wrong(name_of(n) + " has other bytes");
  if (cache->statistics().damaged_blocks > 0) wrong("a kill leaves a damaged block");
  if (cached_bytes(folder, false) > limit_bytes) wrong("reading leaves more than the limit");
  return acknowledged;
}

}  // namespace

std::span<const kind> cache_kinds() {
  static constexpr kind all[] = {{"cache", 40, write_cache, check_cache, true}};
  return all;
}
