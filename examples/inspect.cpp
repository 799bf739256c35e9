// Prints the content of shards: a line for each, and a total. By default it reads the headers of JPEG files and decodes
// nothing. With --quarantine it decodes all images and lists damaged samples; with --entries it adds entry points.
//
//   inspect 'train-{000..007}.tar' val/
//   train-000.tar: 300 samples, 2.0 MB, fields cls jpg (jpg in 273 of 300 samples); images 80x91 .. 138x140 .. 200x200,
//   2 left to libjpeg (sampling 2); ok
//   inspect --keys train-000.tar > keys.txt                        # one in each line, as for .only and .without
//   inspect --quarantine damaged.jsonl 'train-{000..007}.tar'      # then: .without = mr::keys_from("damaged.jsonl")
//   inspect --entries 'train-{000..007}.tar'                       # then train as before, on the same shards
//   entry points: 8 of 8 shards made now, 2400 samples: 2400 fields, 0.5 MB (3.1 % of the shards), 2.1 s
//   inspect --cache /scratch/mr                                    # lists a cache, and verifies its checksums
//   inspect --set-index set.millrace-index 'train-{000..146}.tar'  # writes one file that describes all shards
//
// Image sizes are those with the smallest, the median and the largest number of pixels. libjpeg decodes an image
// several times slower than the built-in decoder, and damage may increase its share. A damaged shard is counted up to
// its damage, then the next one is read; the exit status is 1 if anything was damaged. A shard without an end marker
// (two blocks of zeros) counts as complete, and its line says so. A key that returns later in its shard is counted,
// because the parts of its sample are separate samples: `tar --sort=name` writes them next to each other.
//
// --quarantine reads on all cores, or with --threads N threads, one shard each (damage_search.hpp). It adds a line to
// the file for each damaged sample that is not in it, and prints all of them; the exit status is 1 if there are any.
//
// --max-expansion 5000 reads compressed shards that expand to up to 5,000 times their size (default 1,100).
//
// --set-index also writes missing indexes next to the shards. Keep the file next to the shards, also in copies. The
// shards may have names such as s3://photos/train-{000..146}.tar if the program was built with libcurl. The file then
// contains their versions, which saves requests at the start of a run.
//
// --entries reads all payloads on all cores, or on --threads N threads. It writes the entry points of JPEGs into the
// indexes next to the shards, or into those in --indexes FOLDER: one every 4 MCUs, or every --mcus N. The decoder then
// skips data outside of a crop. Shards with entry points do not change, and their lines say so.
#include "command_line.hpp"
#include "damage_search.hpp"

#include <millrace/base/machine.hpp>
#include <millrace/image/jpeg/jpeg_entries.hpp>
#include <millrace/image/jpeg/jpeg_header.hpp>
#include <millrace/io/cache/cache_contents.hpp>
#include <millrace/io/tar/read/shard_reader.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/sources/prepare/entry_points.hpp>
#include <millrace/sources/prepare/write_set_index.hpp>
#ifdef MILLRACE_EXAMPLE_REMOTE
#include <millrace/adapt/remote.hpp>
#endif

#include <algorithm>
#include <chrono>
#include <map>

namespace mr = millrace;

namespace {

constexpr std::size_t max_printed_fields = 100;

struct contents {
  std::uint64_t samples = 0, bytes = 0, bad_images = 0, bad_samples = 0;
  std::uint64_t returning_keys = 0;                             // samples whose key occurred earlier in the shard
  std::map<std::string, std::uint64_t, std::less<>> fields{};   // samples that have each field
  std::vector<mr::jpeg_header> images{};
  std::map<mr::jpeg_refusal, std::uint64_t> refused{};   // by the built-in decoder
  std::string damage{};                                  // the first damage
  bool without_marker = false;
  mr::entry_points entries{};

  /// Stores one more name than is printed: damaged or hostile shards may have any number.
  void add_field(std::string_view name, std::uint64_t times = 1) {
    if (const auto it = fields.find(name); it != fields.end()) it->second += times;
    else if (fields.size() <= max_printed_fields) fields.emplace(name, times);
  }
  void record(const mr::error& problem) {
    if (damage.empty()) damage = problem.what();
  }
  void add(const contents& other) {
    samples += other.samples;
    bytes += other.bytes;
    bad_images += other.bad_images;
    bad_samples += other.bad_samples;
    returning_keys += other.returning_keys;
    for (const auto& [name, times] : other.fields) add_field(name, times);
    images.insert(images.end(), other.images.begin(), other.images.end());
    for (const auto& [why, times] : other.refused) refused[why] += times;
    entries += other.entries;
  }
};

bool is_jpeg(std::string_view field) { return field.ends_with("jpg") || field.ends_with("jpeg"); }

void inspect_sample(const mr::record& sample, contents& shard) {
  ++shard.samples;
  for (const mr::bytes& field : sample.fields()) {
    shard.bytes += field.size();
    shard.add_field(field.name());
    if (!is_jpeg(field.name())) continue;
    try {
      shard.images.push_back(mr::read_jpeg_header(field));
      if (const auto why = mr::refusal_of_header(field); why != mr::jpeg_refusal::none) ++shard.refused[why];
    } catch (mr::error& problem) {
      ++shard.bad_images;
      problem.locate(sample.where());
      shard.record(problem);
    }
  }
}

contents inspect_shard(const std::string& shard, const std::string& indexes, const mr::shard_reader_options& reading) {
  contents result;
  try {
    result.entries = mr::entry_points_of(shard, indexes);
  } catch (const mr::error&) {   // training replaces an unreadable index
  }
  mr::block_pool pool;
  try {
    mr::shard_reader reader(std::make_unique<mr::file_source>(shard), pool, reading);
    for (bool more = true; more;) {
      try {
        const auto sample = reader.next();
        more = sample.has_value();
        if (sample) inspect_sample(*sample, result);
      } catch (const mr::error& problem) {
        if (!reader.can_continue()) throw;
        ++result.samples;
        ++result.bad_samples;
        result.record(problem);
      }
    }
    result.without_marker = reader.counters().missing_end_markers > 0;
    result.returning_keys = reader.counters().returning_keys;
  } catch (const mr::error& problem) {
    result.record(problem);
  }
  return result;
}

std::string describe_entries(const mr::entry_points& e) {
  char text[100];
  std::snprintf(text, sizeof text, "%llu fields, %.1f MB (%.1f %% of the shards)",
                static_cast<unsigned long long>(e.fields), static_cast<double>(e.bytes) * 1e-6, 100 * e.share());
  return text;
}

std::string describe(contents& c) {
  char text[64];
  std::snprintf(text, sizeof text, " samples, %.1f MB", static_cast<double>(c.bytes) * 1e-6);
  std::string line = std::to_string(c.samples) + text + ", fields", some;
  std::size_t printed = 0;
  for (const auto& [field, times] : c.fields) {
    if (++printed > max_printed_fields) break;
    line += " " + mr::printable(field, 200);
    if (times != c.samples)
      some += (some.empty() ? " (" : ", ") + mr::printable(field, 200) + " in " + std::to_string(times) + " of " +
              std::to_string(c.samples) + " samples";
  }
  if (printed > max_printed_fields) line += " and more";
  if (!some.empty()) line += some + ")";
  if (c.bad_samples > 0) line += "; " + std::to_string(c.bad_samples) + " samples bad";
  if (c.returning_keys > 0)
    line += "; " + std::to_string(c.returning_keys) + " keys returned later in their shard (tar --sort=name)";
  if (!c.images.empty()) {
    std::sort(c.images.begin(), c.images.end(),
              [](const auto& a, const auto& b) { return a.width * a.height < b.width * b.height; });
    const auto size = [](const mr::jpeg_header& h) { return std::to_string(h.width) + "x" + std::to_string(h.height); };
    line += "; images " + size(c.images.front()) + " .. " + size(c.images[c.images.size() / 2]) + " .. " +
            size(c.images.back());
  }
  if (!c.refused.empty()) {
    std::uint64_t sum = 0;
    std::string reasons;
    for (const auto& [why, times] : c.refused) {
      sum += times;
      reasons += (reasons.empty() ? "" : ", ") + std::string(refusal_name(why)) + " " + std::to_string(times);
    }
    line += ", " + std::to_string(sum) + " left to libjpeg (" + reasons + ")";
  }
  if (c.bad_images > 0) line += ", " + std::to_string(c.bad_images) + " bad";
  if (c.entries.shards > 0) line += "; entry points of " + describe_entries(c.entries);
  return line;
}

/// Options of list_damage().
struct damage_listing {
  std::string list;
  unsigned threads = 1;
  mr::shard_reader_options reading{};
};

void list_damage(const std::vector<std::string>& patterns, const damage_listing& o) {
  std::vector<std::string> shards;
  for (const auto& pattern : patterns)
    for (auto& shard : mr::list_shards(pattern)) shards.push_back(std::move(shard));
  const damage_totals totals = damage_search(std::move(shards), o.list, o.reading).run(o.threads);
  if (totals.damaged + totals.cut > 0)
    throw mr::data_error(std::to_string(totals.damaged) + " of " + std::to_string(totals.samples) +
                             " samples are damaged, and " + std::to_string(totals.cut) + " of " +
                             std::to_string(totals.shards) + " shards end early: " + std::to_string(totals.added) +
                             " new lines in '" + mr::printable(o.list) + "'",
                         "Exclude the samples with .without = mr::keys_from() of that file; copy these shards again");
}

void make_entries(const std::vector<std::string>& patterns, const mr::entry_points_options& o, std::size_t mcus) {
  std::vector<std::string> shards;
  for (const auto& pattern : patterns)
    for (auto& shard : mr::list_shards(pattern)) shards.push_back(std::move(shard));
  const auto begin = std::chrono::steady_clock::now();
  const mr::entry_points all = mr::make_entry_points(
      shards,
      [mcus](std::string_view field, std::span<const std::byte> payload) {
        thread_local mr::scratch memory;
        return is_jpeg(field) ? mr::jpeg_entries(payload, {.every_mcus = mcus}, memory) : std::vector<std::byte>();
      },
      o);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::printf("entry points: %llu of %zu shards made now, %llu samples: %s, %.1f s\n",
              static_cast<unsigned long long>(all.processed), shards.size(),
              static_cast<unsigned long long>(all.samples), describe_entries(all).c_str(), time.count());
  if (all.damaged_samples > 0)
    std::printf("%llu samples are damaged and have none\n", static_cast<unsigned long long>(all.damaged_samples));
}

/// Prints a line for each file of a cache; blocks with wrong checksums are an error.
void list_cache(const std::string& folder) {
  const mr::cache_contents contents = mr::contents_of_cache(folder);
  for (const mr::cache_contents_file& file : contents.files) {
    std::printf("%s: %.1f %% of %.1f MB", mr::printable(file.name).c_str(), 100 * file.share(),
                static_cast<double>(file.size_bytes) * 1e-6);
    if (file.damaged_blocks > 0)
      std::printf(", %llu blocks DAMAGED", static_cast<unsigned long long>(file.damaged_blocks));
    std::printf("\n");
  }
  std::printf("total: %zu files, %llu blocks, %.1f MB on the disk; %llu damaged, %llu being written\n",
              contents.files.size(), static_cast<unsigned long long>(contents.blocks),
              static_cast<double>(contents.disk_bytes) * 1e-6, static_cast<unsigned long long>(contents.damaged_blocks),
              static_cast<unsigned long long>(contents.parts));
  if (contents.damaged_blocks > 0)
    throw mr::data_error(
        std::to_string(contents.damaged_blocks) + " of " + std::to_string(contents.blocks) + " blocks are damaged",
        "Runs fetch them again; if this occurs again, check the disk");
}

/// Returns the storage of the shards of a pattern.
mr::storage storage_of(const std::string& pattern) {
  if (pattern.find("://") == std::string::npos || pattern.starts_with("file:")) return {};
#ifdef MILLRACE_EXAMPLE_REMOTE
  return mr::remote();
#else
  throw mr::setup_error("this program was built without libcurl and libcrypto, and cannot read " + pattern,
                        "Install libcurl4-openssl-dev and libssl-dev, and build it again");
#endif
}

void write_set(const std::vector<std::string>& patterns, const std::string& path) {
  std::string all;
  for (const std::string& pattern : patterns) all += (all.empty() ? "" : "::") + pattern;
  const mr::set_index_totals totals = mr::write_set_index(all, path, {.storage = storage_of(all)});
  std::printf("%s: %zu shards, %llu samples, %.1f MB; %zu left out\n", mr::printable(path).c_str(), totals.shards,
              static_cast<unsigned long long>(totals.samples), static_cast<double>(totals.bytes) * 1e-6,
              totals.left_out);
}

bool is_text(std::string_view key) {
  return std::none_of(key.begin(), key.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

/// Prints one key in each line: the format of the lists for .only and .without.
void print_keys(const std::vector<std::string>& patterns, const mr::shard_reader_options& reading) {
  mr::block_pool pool;
  for (const auto& pattern : patterns)
    for (const auto& shard : mr::list_shards(pattern)) {
      mr::shard_reader reader(std::make_unique<mr::file_source>(shard), pool, reading);
      while (const auto sample = reader.next())
        std::printf("%s\n",
                    is_text(sample->key()) ? std::string(sample->key()).c_str() : mr::printable(sample->key()).c_str());
    }
}

void inspect(command_line& args) {
  const std::string cache = args.text("--cache", "");
  const std::string set = args.text("--set-index", "");
  const std::string list = args.text("--quarantine", "");
  const std::string indexes = args.text("--indexes", "");
  const bool entries = args.flag("--entries");
  const bool keys = args.flag("--keys");
  const auto mcus = args.number("--mcus", std::size_t{4});
  const auto threads = args.number("--threads", std::max(1U, mr::usable_cores()));
  const mr::shard_reader_options reading{
      .limits = {.max_expansion = args.number("--max-expansion", mr::shard_limits{}.max_expansion)}};
  const auto patterns = args.rest();
  if (!cache.empty() && patterns.empty()) return list_cache(cache);
  if (patterns.empty() || !cache.empty()) args.refuse("expected either shards or --cache FOLDER");
  if (threads == 0) args.refuse("--threads is 0, expected at least 1");
  if (entries + keys + !list.empty() + !set.empty() > 1)
    args.refuse("expected one of --entries, --keys, --quarantine and --set-index");
  if (mcus == 0) args.refuse("--mcus is 0, expected at least 1");
  if (!set.empty()) return write_set(patterns, set);
  if (keys) return print_keys(patterns, reading);
  if (!list.empty()) return list_damage(patterns, {.list = list, .threads = threads, .reading = reading});
  if (entries) return make_entries(patterns, {.index_folder = indexes, .threads = threads}, mcus);
  contents all;
  std::size_t shards = 0, damaged = 0, unsorted = 0;
  for (const auto& pattern : patterns)
    for (const auto& shard : mr::list_shards(pattern)) {
      contents result = inspect_shard(shard, indexes, reading);
      std::printf("%s: %s; %s\n", mr::printable(shard).c_str(), describe(result).c_str(),
                  !result.damage.empty()  ? ("DAMAGED: " + result.damage).c_str()
                  : result.without_marker ? "ok, but ended without a marker"
                                          : "ok");
      std::fflush(stdout);
      all.add(result);
      ++shards;
      damaged += !result.damage.empty();
      unsorted += result.returning_keys > 0;
    }
  std::printf("total: %zu shards, %s; %zu damaged\n", shards, describe(all).c_str(), damaged);
  if (unsorted > 0)
    std::printf("%zu of %zu shards have members of one sample in several places, and each part counts as a sample: "
                "write them again with `tar --sort=name`\n",
                unsorted, shards);
  if (damaged > 0)
    throw mr::data_error(std::to_string(damaged) + " of " + std::to_string(shards) + " shards are damaged",
                         "The line of each shard states its first damage");
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: inspect [--indexes FOLDER] [--max-expansion N] SHARDS...\n"
                      "       inspect --keys SHARDS...\n"
                      "       inspect --quarantine FILE.jsonl [--threads N] SHARDS...\n"
                      "       inspect --entries [--mcus N] [--threads N] [--indexes FOLDER] SHARDS...\n"
                      "       inspect --set-index FILE SHARDS...\n"
                      "       inspect --cache FOLDER\n"
                      "SHARDS are a file, a folder, or a pattern such as 'a-{000..007}.tar'"},
                     inspect);
}
