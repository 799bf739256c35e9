// Definitions for index_build.hpp.
#pragma once

#include <millrace/io/index/set/index_build.hpp>

#include <millrace/base/error.hpp>
#include <millrace/base/format.hpp>
#include <millrace/base/machine.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/index/format/tar_index_scan.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns whether an index file exists.
MILLRACE_RARE bool has_index_file(const std::string& path, const index_file_options& files) noexcept {
  struct ::stat status{};
  return files.can_store() && posix_files::stat_path(path.c_str(), status) == 0;
}

MILLRACE_RARE index_builder::index_builder(std::span<const std::string> shards, const index_build_options& options)
    : shards_(shards),
      options_(options),
      terminal_(options.notices && options.notices->prints() && prints_to_terminal()) {
  result_.indexes.resize(shards.size());
  result_.heads.resize(shards.size());
  is_done_.resize(shards.size());
  to_scan_.resize(shards.size());
}

MILLRACE_RARE shard_indexes index_builder::run() {
  if (options_.store && !options_.files.cache_folder.empty())
    posix_files::make_folder(options_.files.cache_folder.c_str());   // on failure, writing an index reports it
  slow_step step("reads and builds indexes", {.items = shards_.size(),
                                              .only_stalls = options_.notices != nullptr,
                                              .notices = options_.notices,
                                              .after_ns = options_.report_after_ns});
  step_ = &step;
  const unsigned cores = std::max(usable_cores(), 1U);
  const unsigned usual = !options_.files.storage.is_local() ? max_stored_requests
                         : options_.entries                 ? cores
                                                            : std::min(cores, 8U);
  std::size_t count = options_.threads > 0 ? options_.threads : usual;
  const std::size_t requested = count;
  count = std::min(count, shards_.size());
  if (count > 0) threads_of_shard_ = static_cast<unsigned>((requested + count - 1) / count);
  threads_ = std::max<std::size_t>(count, 1);
  if (!options_.files.storage.is_local() && options_.heads_only) {
    for_each_shard(&index_builder::query_storage);
    report_scan();
  }
  for_each_shard(&index_builder::process);
  if (!options_.files.storage.is_local()) result_.requests = shards_.size();
  if (shown_once_) show_progress(true);
  std::sort(result_.touched.begin(), result_.touched.end());
  std::sort(result_.damaged.begin(), result_.damaged.end());
  return std::move(result_);
}

MILLRACE_RARE void index_builder::for_each_shard(step act) {
  next_ = 0;
  std::vector<std::thread> others;
  const auto join = [&others] {
    for (auto& other : others) other.join();
  };
  try {
    start_threads(others, threads_ - 1, [this, act](std::size_t) { work(act); });
  } catch (...) {
    failed_from_ = 0;
    join();
    throw;
  }
  work(act);
  join();
  if (failure_) std::rethrow_exception(failure_);
}

MILLRACE_RARE void index_builder::work(step act) noexcept {
  std::optional<block_pool> pool;
  for (;;) {
    const std::size_t shard = next_.fetch_add(1);
    if (shard >= shards_.size() || shard > failed_from_) return;
    if (is_done_[shard]) continue;
    try {
      if (!pool) pool.emplace();
      const slow_step::item here(*step_, shards_[shard]);
      (this->*act)(shard, *pool);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ && shard > failed_from_) continue;
      failed_from_ = shard;
      failure_ = std::current_exception();
    }
  }
}

MILLRACE_RARE void index_builder::query_storage(std::size_t shard, block_pool&) {
  const std::string index_file = index_path(shards_[shard], options_.files);
  if (has_index_file(index_file, options_.files) || add_stored_head(shard)) return;
  to_scan_[shard] = identify(shard, index_file);
}

MILLRACE_RARE void index_builder::report_scan() const {
  const std::size_t request_bytes = options_.files.storage->request_bytes();
  std::uint64_t bytes = 0, requests = 0;
  std::size_t shards = 0;
  for (const auto& shard : to_scan_)
    if (shard) {
      ++shards;
      bytes += shard->size_bytes;
      requests += request_bytes == 0 ? 1 : (shard->size_bytes + request_bytes - 1) / request_bytes;
    }
  if (shards == 0 || !options_.notices) return;
  options_.notices->deliver(
      {.kind = notice_kind::index,
       .text = std::to_string(shards) + " of " + std::to_string(shards_.size()) +
               " shards have no index in the storage. To build the indexes, all bytes of these shards are read: " +
               bytes_text(static_cast<double>(bytes)) + " in " + (request_bytes == 0 ? "at least " : "about ") +
               std::to_string(requests) +
               " requests. To avoid that, store the indexes next to the shards (examples/inspect), or stream the "
               "shards: .index = mr::index::off"});
}

MILLRACE_RARE void index_builder::process(std::size_t shard, block_pool& pool) {
  const std::string index_file = index_path(shards_[shard], options_.files);
  const bool stored = !options_.files.storage.is_local();
  const auto identity = to_scan_[shard] ? to_scan_[shard] : identify(shard, index_file);
  if (!identity) return;
  auto before = load_file(shard, index_file, *identity);
  if (!before) return;
  if (before->state != index_file_state::good && stored) use_stored(shard, *identity, *before);
  index_result result = before->state == index_file_state::good ? index_result{.index = std::move(before->index)}
                                                                : build(shard, index_file, *identity, *before, pool);
  if (result.may_be_stored() && needs_entries(result.index.entries().built))
    try_to_add_entries(shards_[shard], index_file, result);
  add(shard, std::move(result));
}

MILLRACE_RARE std::optional<shard_identity> index_builder::identify(std::size_t shard, const std::string& index_file) {
  try {
    return identify_shard(shards_[shard], options_.files.storage);
  } catch (const io_error&) {
    if (!add_older(shard, index_file)) throw;
    return std::nullopt;
  }
}

MILLRACE_RARE bool index_builder::add_older(std::size_t shard, const std::string& index_file) {
  if (!options_.older_of_damaged || !options_.files.can_store()) return false;
  shard_index older = load_index_without_shard(index_file).index;
  if (older.state() != shard_index::shard_state::complete || older.samples() == 0) return false;
  add(shard, {.index = std::move(older), .outcome = index_outcome::older_of_damaged});
  return true;
}

MILLRACE_RARE std::optional<loaded_index> index_builder::load_file(std::size_t shard, const std::string& index_file,
                                                                   const shard_identity& identity) {
  if (!options_.files.can_store()) return loaded_index();
  try {
    if (options_.heads_only) {
      const index_summary head = summarize_index(index_file, identity);
      if (head.state == index_file_state::good && head.shard_is_complete && !needs_entries(head.entries_built)) {
        add_head(shard, head);
        return std::nullopt;
      }
    }
    return load_index(index_file, identity);
  } catch (const io_error&) {   // the index is built again, and store_index() reports why the file is unreadable
    return loaded_index();
  }
}

MILLRACE_RARE index_result index_builder::build(std::size_t shard, const std::string& index_file,
                                                const shard_identity& identity, const loaded_index& before,
                                                block_pool& pool) {
  const bool touched = before.state == index_file_state::touched;
  index_result result{.index = scan(shards_[shard], identity, pool),
                      .outcome = touched ? index_outcome::touched : index_outcome::built,
                      .before = before.state};
  if (touched) result.index.copy_checksums_from(before.index);
  if (result.index.state() == shard_index::shard_state::damaged) compare_with_older(index_file, result);
  try {
    if (options_.store && result.may_be_stored()) store(index_file, result.index);
  } catch (const io_error& e) {
    result.store_failure = e.what();
  }
  return result;
}

MILLRACE_RARE void index_builder::compare_with_older(const std::string& index_file, index_result& result) const {
  if (!options_.files.can_store()) return;
  shard_index older = load_index_without_shard(index_file).index;
  if (older.state() != shard_index::shard_state::complete || older.samples() <= result.index.samples() ||
      !older.begins_with(result.index))
    return;
  result.outcome = options_.older_of_damaged ? index_outcome::older_of_damaged : index_outcome::cut;
  if (options_.older_of_damaged) result.index = std::move(older);
}

MILLRACE_RARE void index_builder::try_to_add_entries(const std::string& path, const std::string& index_file,
                                                     index_result& result) {
  try {
    add_entries(path, index_file, result.index);
  } catch (const io_error& e) {
    // The index was built. Only its entry points were not stored.
    result.index.set_entries({});
    result.store_failure = e.what();
  }
}

MILLRACE_RARE void index_builder::add_entries(const std::string& path, const std::string& index_file,
                                              shard_index& index) {
  if (index.state() == shard_index::shard_state::compressed) return;
  // Throws before all payloads are read, if the index cannot be written.
  { const atomic_file<> can_be_written(index_file); }
  const auto done = [this](std::uint64_t samples, std::uint64_t payload_bytes) {
    const std::lock_guard lock(mutex_);
    result_.counts.entries_inspected += samples;
    result_.counts.entries_payload_bytes += payload_bytes;
    show_progress(false);
  };
  const built_entries result = build_entries({.storage = options_.files.storage,
                                              .shard = path,
                                              .build = options_.entries,
                                              .threads = threads_of_shard_,
                                              .done = done},
                                             index);
  store(index_file, index, &result.pieces);
  const std::lock_guard lock(mutex_);
  ++result_.counts.entries_built;
  result_.counts.entries_unreadable += result.unreadable;
}

MILLRACE_RARE bool index_builder::add_stored_head(std::size_t shard) {
  try {
    const index_summary head = summarize_stored_index(options_.files.storage, shards_[shard]);
    if (head.state != index_file_state::good || !head.shard_is_complete || needs_entries(head.entries_built))
      return false;
    add_head(shard, head);
    return true;
  } catch (const io_error&) {   // a later read of the shard reports the error
    return false;
  }
}

MILLRACE_RARE void index_builder::use_stored(std::size_t shard, const shard_identity& identity,
                                             loaded_index& index) const {
  try {
    loaded_index stored = load_stored_index(options_.files.storage, shards_[shard]);
    // If the shard was copied, its modification time differs from the time in its index.
    if (stored.state != index_file_state::good || stored.index.identity().size_bytes != identity.size_bytes) return;
    stored.index.identify(identity);
    index = std::move(stored);
  } catch (const io_error&) {   // a later read of the shard reports the error
  }
}

MILLRACE_RARE void index_builder::add(std::size_t shard, index_result&& result) {
  auto index = make_shared_object<shard_index>(std::move(result.index));
  if (options_.plain_only && index->state() == shard_index::shard_state::compressed)
    throw compressed_shard(shards_[shard]);
  const std::lock_guard lock(mutex_);
  if (!result.store_failure.empty()) {
    ++result_.counts.not_stored;
    if (result_.store_failure.empty()) result_.store_failure = std::move(result.store_failure);
  }
  if (result.outcome == index_outcome::touched) result_.touched.push_back(shard);
  if (result.outcome == index_outcome::older_of_damaged) result_.damaged.push_back(shard);
  count(*index, result.before);
  result_.heads[shard] = summarize_index(*index);
  result_.indexes[shard] = std::move(index);
  is_done_[shard] = true;
  ++done_;
  show_progress(false);
}

MILLRACE_RARE void index_builder::store(const std::string& index_file, shard_index& index,
                                        const entry_pieces* entries) {
  if (!options_.files.can_store()) return;   // no folder for indexes
  clean_folder_of(index_file);
  store_index(index_file, index, entries);
}

MILLRACE_RARE void index_builder::clean_folder_of(const std::string& index_file) {
  {
    const std::lock_guard lock(mutex_);
    if (!cleaned_.insert(index_file.substr(0, index_file.rfind('/') + 1)).second) return;   // npos + 1 is 0
  }
  remove_abandoned_indexes(index_file);
}

MILLRACE_RARE void index_builder::add_head(std::size_t shard, const index_summary& head) {
  const std::lock_guard lock(mutex_);
  result_.heads[shard] = head;
  ++result_.counts.loaded;
  result_.counts.samples += head.samples;
  is_done_[shard] = true;
  ++done_;
}

MILLRACE_RARE shard_index index_builder::scan(const std::string& path, const shard_identity& identity,
                                              block_pool& pool) const {
  const storage& at = options_.files.storage;
  const auto source = open_file(at, path);
  shard_index index = scan_shard(*source, pool);
  if (identify_shard(path, at) != identity)
    throw io_error("the shard was changed while its index was built",
                   "Wait until the shard is complete. Write new shards under another name, and rename them at the end",
                   {.stage = "index", .shard = path});
  index.identify(identity);
  if (index.facts().counters.missing_end_markers > 0)
    if (const auto declared = declared_samples(path, at); declared.samples > index.samples())
      throw fewer_than_declared(declared, index.samples(), {.stage = "index", .shard = path});
  return index;
}

MILLRACE_RARE void index_builder::count(const shard_index& index, index_file_state before) noexcept {
  index_build_counts& c = result_.counts;
  using enum index_file_state;
  if (index.state() == shard_index::shard_state::compressed) ++c.compressed;
  else if (before == good) ++c.loaded;
  else if (before == stale || before == touched) ++c.rebuilt_stale;
  else if (before == damaged) ++c.rebuilt_damaged;
  else ++c.built;
  if (before != good) {
    c.scanned_bytes += index.identity().size_bytes;
    c.scanned_members += index.members();
  }
  c.damaged_shards += index.state() == shard_index::shard_state::damaged;
  c.samples += index.samples();
}

MILLRACE_RARE void index_builder::show_progress(bool last) {
  if (!options_.notices) return;
  const std::int64_t now_ns = read_clock_ns(CLOCK_MONOTONIC);
  const std::int64_t pause_ns = !shown_once_ ? 1'000'000'000 : terminal_ ? 250'000'000 : 10'000'000'000;
  if (!last && now_ns - shown_ns_ < pause_ns) return;
  const double seconds = static_cast<double>(now_ns - start_ns_) * 1e-9;
  const index_build_counts& c = result_.counts;
  char text[200];
  if (c.entries_inspected > 0)
    std::snprintf(text, sizeof text, "building entry points: %zu of %zu shards, %llu samples; %.3f GB/s of payloads",
                  done_, shards_.size(), static_cast<unsigned long long>(c.entries_inspected),
                  static_cast<double>(c.entries_payload_bytes) * 1e-9 / seconds);
  else
    std::snprintf(text, sizeof text,
                  "indexing: %zu of %zu shards, %llu samples; %.2f GB/s of shards, %.2f million headers/s; about "
                  "%.0f s left",
                  done_, shards_.size(), static_cast<unsigned long long>(c.samples),
                  static_cast<double>(c.scanned_bytes) * 1e-9 / seconds,
                  static_cast<double>(c.scanned_members) * 1e-6 / seconds,
                  seconds * static_cast<double>(shards_.size() - done_) /
                      static_cast<double>(std::max<std::uint64_t>(1, c.built + c.rebuilt_stale + c.rebuilt_damaged)));
  if (terminal_) print_progress(text, last);
  else options_.notices->deliver({.kind = notice_kind::progress, .text = text});
  shown_ns_ = now_ns;
  shown_once_ = true;
}

MILLRACE_RARE shard_indexes build_indexes(std::span<const std::string> shards, const index_build_options& options) {
  return index_builder(shards, options).run();
}

MILLRACE_RARE void report_index_trouble(notice_outlet& to, const std::string& problem, std::string_view reason) {
  if (const std::string_view program = "millrace: "; reason.starts_with(program)) reason.remove_prefix(program.size());
  to.deliver(
      {.kind = notice_kind::index, .severity = notice_severity::warning, .text = problem + ": " + std::string(reason)});
}

MILLRACE_RARE std::shared_ptr<shard_index> index_of(const std::string& shard, const index_summary& head,
                                                    index_build_options options) {
  const auto is_same = [&head](const shard_index& index) {
    return index.identity().size_bytes == head.shard.size_bytes && index.fingerprint() == head.fingerprint &&
           index.samples() == head.samples;
  };
  const storage& at = options.files.storage;
  if (!at.is_local() && !has_index_file(index_path(shard, options.files), options.files)) try {
      loaded_index stored = load_stored_index(at, shard, head.index_bytes);
      if (stored.state == index_file_state::good && is_same(stored.index)) {
        if (head.identified) stored.index.identify(head.shard);
        return make_shared_object<shard_index>(std::move(stored.index));
      }
    } catch (const io_error&) {   // build_indexes() builds the index again
    }
  options.heads_only = false;
  options.threads = 1;
  auto index = build_indexes({&shard, 1}, options).indexes.front();
  if (is_same(*index) && (!head.identified || index->identity() == head.shard)) return index;
  throw data_error("the shard was changed since this program started: its samples, size or modification time differ",
                   "Write new shards under another name, and start again", {.stage = "index", .shard = shard});
}

}}}   // namespace millrace::detail
