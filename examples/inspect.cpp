// What is in these shards: a line for each, and a total. Reads the headers of JPEG files, decodes nothing; or, with
// --quarantine, decodes them all and lists what is damaged; or, with --entries, makes crops of them faster.
//
//   inspect 'train-{000..007}.tar' val/
//   train-000.tar: 300 samples, 2.0 MB, fields cls jpg (jpg in 273 of 300 samples); images 80x91 .. 138x140 .. 200x200,
//   2 left to libjpeg (sampling 2); ok
//   inspect --keys train-000.tar > keys.txt                        # one in each line, as for .only and .without
//   inspect --quarantine damaged.jsonl 'train-{000..007}.tar'      # then: .without = mr::keys_from("damaged.jsonl")
//   inspect --entries 'train-{000..007}.tar'                       # then train as before, on the same shards
//   entry points: 8 of 8 shards made now, 2400 samples: 2400 fields, 0.5 MB (3.1 % of the shards), 2.1 s
//   inspect --cache /scratch/mr                                    # what a cache keeps, and whether it is as written
//   inspect --set-index set.millrace-index 'train-{000..146}.tar'  # tells of all shards in one file
//
// Image sizes are those with the least, the median and the most pixels. What is left to libjpeg takes several times as
// long as what the built-in decoder knows; damage may leave more to it. A damaged shard is counted as far as it can be
// read, then the next one is looked at; the exit status is 1 if anything was damaged. One that ended without a marker
// (two blocks of zeros) is whole as far as anybody can tell, and said to be so. A key that came back later in its shard
// is counted, as the pieces of a sample are samples of their own: `tar --sort=name` writes them next to each other.
// --quarantine reads on all cores, or with so many --threads, one shard each (damage_search.hpp). It adds a line to the
// file for each damaged sample that is not in it, and prints all of them; the exit status is 1 if there is any.
// --max-expansion 5000 reads compressed shards that expand to up to 5,000 times their size (default 1,100).
// --set-index makes missing indexes beside the shards, too. The file belongs beside the shards, wherever they are
// copied. The shards may also be names such as s3://photos/train-{000..146}.tar, where this was built with libcurl. The
// file then knows their versions, which spares a start more questions.
// --entries reads all payloads on all cores, or on so many --threads, and writes the entry points of JPEGs into the
// indexes beside the shards, or into those in --indexes FOLDER: one every 4 MCUs, or every so many --mcus. The decoder
// then leaves out what a crop does not show. Shards that have entry points are left alone, and their lines say so.
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

constexpr std::size_t max_fields_shown = 100;

struct contents {
  std::uint64_t samples = 0, bytes = 0, bad_images = 0, bad_samples = 0;
  std::uint64_t returning_keys = 0;                         // samples with the key of an earlier one in their shard
  std::map<std::string, std::uint64_t, std::less<>> fields{};   // and how many samples have each
  std::vector<mr::jpeg_header> images{};
  std::map<mr::jpeg_refusal, std::uint64_t> refused{};   // by the built-in decoder
  std::string damage{};   // the first
  bool without_marker = false;
  mr::entry_points entries{};

  /// Remembers one more name than is shown: damaged or hostile shards may have any number.
  void add_field(std::string_view name, std::uint64_t times = 1) {
    if (const auto it = fields.find(name); it != fields.end()) it->second += times;
    else if (fields.size() <= max_fields_shown) fields.emplace(name, times);
  }
  void note(const mr::error& problem) {
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

void look_at(const mr::record& sample, contents& found) {
  ++found.samples;
  for (const mr::bytes& field : sample.fields()) {
    found.bytes += field.size();
    found.add_field(field.name());
    if (!is_jpeg(field.name())) continue;
    try {
      found.images.push_back(mr::read_jpeg_header(field));
      if (const auto why = mr::refusal_of_header(field); why != mr::jpeg_refusal::none) ++found.refused[why];
    } catch (mr::error& problem) {
      ++found.bad_images;
      problem.locate(sample.where());
      found.note(problem);
    }
  }
}

contents look_into(const std::string& shard, const std::string& indexes, const mr::shard_reader_options& reading) {
  contents found;
  try {
    found.entries = mr::entry_points_of(shard, indexes);
  } catch (const mr::error&) {   // training makes an index that cannot be read again
  }
  mr::block_pool pool;
  try {
    mr::shard_reader reader(std::make_unique<mr::file_source>(shard), pool, reading);
    for (bool more = true; more;) {
      try {
        const auto sample = reader.next();
        more = sample.has_value();
        if (sample) look_at(*sample, found);
      } catch (const mr::error& problem) {
        if (!reader.goes_on()) throw;
        ++found.samples;
        ++found.bad_samples;
        found.note(problem);
      }
    }
    found.without_marker = reader.counters().missing_end_markers > 0;
    found.returning_keys = reader.counters().returning_keys;
  } catch (const mr::error& problem) {
    found.note(problem);
  }
  return found;
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
  std::size_t shown = 0;
  for (const auto& [field, times] : c.fields) {
    if (++shown > max_fields_shown) break;
    line += " " + mr::printable(field, 200);
    if (times != c.samples)
      some += (some.empty() ? " (" : ", ") + mr::printable(field, 200) + " in " + std::to_string(times) + " of " +
              std::to_string(c.samples) + " samples";
  }
  if (shown > max_fields_shown) line += " and more";
  if (!some.empty()) line += some + ")";
  if (c.bad_samples > 0) line += "; " + std::to_string(c.bad_samples) + " samples bad";
  if (c.returning_keys > 0)
    line += "; " + std::to_string(c.returning_keys) + " keys came back later in their shard (tar --sort=name)";
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
  const damage_totals found = damage_search(std::move(shards), o.list, o.reading).run(o.threads);
  if (found.damaged + found.cut > 0)
    throw mr::data_error(std::to_string(found.damaged) + " of " + std::to_string(found.samples) +
                             " samples are damaged, and " + std::to_string(found.cut) + " of " +
                             std::to_string(found.shards) + " shards end early: " + std::to_string(found.added) +
                             " new lines in '" + mr::printable(o.list) + "'",
                         "Leave the samples out by .without = mr::keys_from() of that file; copy such shards again");
}

void make_entries(const std::vector<std::string>& patterns, const mr::entry_points_options& o,
                  std::size_t mcus) {
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
              static_cast<unsigned long long>(all.made), shards.size(), static_cast<unsigned long long>(all.samples),
              describe_entries(all).c_str(), time.count());
  if (all.damaged_samples > 0)
    std::printf("%llu samples are damaged and have none\n", static_cast<unsigned long long>(all.damaged_samples));
}

/// A line for each file that a cache keeps; blocks with wrong checksums are an error.
void list_cache(const std::string& folder) {
  const mr::cache_contents found = mr::contents_of_cache(folder);
  for (const mr::cache_contents_file& file : found.files) {
    std::printf("%s: %.1f %% of %.1f MB", mr::printable(file.name).c_str(), 100 * file.share(),
                static_cast<double>(file.size_bytes) * 1e-6);
    if (file.damaged_blocks > 0)
      std::printf(", %llu blocks DAMAGED", static_cast<unsigned long long>(file.damaged_blocks));
    std::printf("\n");
  }
  std::printf("total: %zu files, %llu blocks, %.1f MB on the disk; %llu damaged, %llu being written\n",
              found.files.size(), static_cast<unsigned long long>(found.blocks),
              static_cast<double>(found.disk_bytes) * 1e-6, static_cast<unsigned long long>(found.damaged_blocks),
              static_cast<unsigned long long>(found.parts));
  if (found.damaged_blocks > 0)
    throw mr::data_error(std::to_string(found.damaged_blocks) + " of " + std::to_string(found.blocks) +
                             " blocks are damaged",
                         "Runs fetch them again; if it comes again, look at the disk");
}

/// Returns where the shards of a pattern are.
mr::storage place_of(const std::string& pattern) {
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
  const mr::set_index_totals told = mr::write_set_index(all, path, {.storage = place_of(all)});
  std::printf("%s: %zu shards, %llu samples, %.1f MB; %zu left out\n", mr::printable(path).c_str(), told.shards,
              static_cast<unsigned long long>(told.samples), static_cast<double>(told.bytes) * 1e-6, told.left_out);
}

bool is_text(std::string_view key) {
  return std::none_of(key.begin(), key.end(), [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; });
}

/// Prints one key in each line, as lists for .only and .without have them.
void print_keys(const std::vector<std::string>& patterns, const mr::shard_reader_options& reading) {
  mr::block_pool pool;
  for (const auto& pattern : patterns)
    for (const auto& shard : mr::list_shards(pattern)) {
      mr::shard_reader reader(std::make_unique<mr::file_source>(shard), pool, reading);
      while (const auto sample = reader.next())
        std::printf("%s\n", is_text(sample->key()) ? std::string(sample->key()).c_str()
                                                    : mr::printable(sample->key()).c_str());
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
      contents found = look_into(shard, indexes, reading);
      std::printf("%s: %s; %s\n", mr::printable(shard).c_str(), describe(found).c_str(),
                  !found.damage.empty()   ? ("DAMAGED: " + found.damage).c_str()
                  : found.without_marker ? "ok, but ended without a marker" : "ok");
      std::fflush(stdout);
      all.add(found);
      ++shards;
      damaged += !found.damage.empty();
      unsorted += found.returning_keys > 0;
    }
  std::printf("total: %zu shards, %s; %zu damaged\n", shards, describe(all).c_str(), damaged);
  if (unsorted > 0)
    std::printf("%zu of %zu shards have members of one sample in several places, and each piece counts as a sample: "
                "write them again with `tar --sort=name`\n", unsorted, shards);
  if (damaged > 0)
    throw mr::data_error(std::to_string(damaged) + " of " + std::to_string(shards) + " shards are damaged",
                         "The first damage of each is in its line");
}

}  // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv, "usage: inspect [--indexes FOLDER] [--max-expansion N] SHARDS...\n"
                                  "       inspect --keys SHARDS...\n"
                                  "       inspect --quarantine FILE.jsonl [--threads N] SHARDS...\n"
                                  "       inspect --entries [--mcus N] [--threads N] [--indexes FOLDER] SHARDS...\n"
                                  "       inspect --set-index FILE SHARDS...\n"
                                  "       inspect --cache FOLDER\n"
                                  "SHARDS are a file, a folder, or a pattern such as 'a-{000..007}.tar'"},
                     inspect);
}
