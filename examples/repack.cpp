// Rewrites shards so that their images decode faster: progressive and arithmetic JPEGs become baseline, without loss.
//
//   repack 'in/train-{000..146}.tar' 'out/train-%03d.tar'                        # the same pixels, bit for bit
//   repack 'in/train-{000..146}.tar' 'out/train-%03d.tar' --restarts-per-row auto --codes     # crops decode faster
//   repack 'in/train-{000..146}.tar' 'out/small-%03d.tar' --short-side 256       # smaller images, with loss
//
// Each shard becomes one shard, with the same samples in the same order. Fields that end in jpg or jpeg are transcoded
// (transcode/jpeg_transcoder.hpp), and the coefficients are compared after writing. Baseline files get smaller or keep
// their size, progressive ones grow by some per cent. All other fields are unchanged. The output is plain tar, also for
// compressed shards, and the fields of a sample are sorted by name. Members that belong to no sample (dot files, links,
// names without a dot) are omitted and counted.
//
// --max-expansion 5000 reads compressed shards that expand to up to 5,000 times their size (default 1,100).
//
// A decoder can start after a restart marker (--restarts-per-row), and therefore reads less for a crop; auto selects
// the interval for each image (restart_choice.hpp). With --codes all images share one pair of Huffman codes, whose
// short words a decoder finds in one lookup. The codes are computed from the first 10,000 images, before anything is
// written, and stored in the list of finished shards. Both options write plain baseline JPEGs.
//
// If an interrupted run is started again, it keeps finished shards, and writes the same bytes as an uninterrupted run,
// with any number of threads. A field that is damaged or not a JPEG ends the run after the shards before it, or, with
// --codes, before the first shard. With --keep-damaged it is named and kept unchanged. The memory contains at most two
// samples per thread and two more, and for each thread twice the coefficients of an image, of two bytes each.
#include "command_line.hpp"
#include "repack_codes.hpp"
#include "repack_picture.hpp"
#include "repack_progress.hpp"
#include "repack_reader.hpp"

#include <millrace/base/machine.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/sources/list/shard_list.hpp>

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <chrono>
#include <limits>
#include <optional>

namespace mr = millrace;

namespace {

constexpr auto usage_text =
    "usage: repack SHARDS PATTERN [--restarts-per-row N|auto] [--codes] [--keep-damaged]\n"
    "              [--threads N] [--max-side PIXELS] [--short-side PIXELS] [--quality N]\n"
    "              [--first-number N] [--max-expansion N]\n"
    "SHARDS are a file, a folder or a pattern, as 'in/a-{000..007}.tar'; PATTERN names the new ones: 'out/a-%03d.tar'";

struct counts {
  std::uint64_t samples = 0, pictures = 0, progressive = 0, arithmetic = 0, shrunk = 0, damaged = 0;
  std::uint64_t bytes_before = 0, bytes_after = 0;   // of images
  restart_gain restarts{};

  void add(const counts& more) {
    samples += more.samples;
    pictures += more.pictures;
    progressive += more.progressive;
    arithmetic += more.arithmetic;
    shrunk += more.shrunk;
    damaged += more.damaged;
    bytes_before += more.bytes_before;
    bytes_after += more.bytes_after;
    restarts += more.restarts;
  }
};

/// A sample in the pipeline, or the error that replaces it.
struct job {
  std::size_t shard = 0;
  mr::record sample{};
  std::vector<std::vector<std::byte>> pictures{};   // for each field; empty: unchanged
  std::vector<std::string> damage{};                // reasons, for damaged fields that are kept
  counts totals{};
  std::exception_ptr failure{};
};
using job_pointer = std::shared_ptr<job>;

void repack_field(job& work, const mr::bytes& field, const repack_options& options, bool keep_damaged) {
  auto& c = work.totals;
  ++c.pictures;
  c.bytes_before += field.size();
  try {
    auto repacked = repack_picture(field, options);
    c.progressive += repacked.before.progressive;
    c.arithmetic += repacked.before.arithmetic;
    c.shrunk += repacked.shrunk;
    c.bytes_after += repacked.file.size();
    c.restarts += repacked.restarts;
    work.pictures.back() = std::move(repacked.file);
  } catch (mr::data_error& problem) {
    if (!keep_damaged) throw;
    problem.locate(work.sample.where());
    work.damage.push_back(problem.what());
    ++c.damaged;
    c.bytes_after += field.size();
  }
}

class writer {
 public:
  writer(mr::shard_writer_options options, std::size_t shards, std::size_t finished)
      : options_(std::move(options)), shards_(shards), finished_(finished) {}

  void write(const job& done) {
    if (shard_ && done.shard != at_) finish();
    if (done.failure) std::rethrow_exception(done.failure);
    if (!shard_) {
      at_ = done.shard;
      auto one = options_;
      one.first_number += at_;
      shard_.emplace(one);
    }
    fields_.clear();
    for (std::size_t i = 0; i < done.sample.field_count(); ++i) {
      const mr::bytes field = done.sample.field(i);   // name and bytes are in memory of the record
      const auto& picture = done.pictures[i];
      fields_.emplace_back(field.name(), picture.empty() ? std::span<const std::byte>(field) : picture);
    }
    try {
      shard_->write(done.sample.key(), fields_);
    } catch (mr::error& problem) {
      problem.locate(done.sample.where());
      throw;
    }
    for (const auto& why : done.damage)
      std::fprintf(stderr, "%skept as it is: %s\n", on_terminal_ ? "\n" : "", why.c_str());
    all_.add(done.totals);
    if (++all_.samples % (on_terminal_ ? 100 : 10'000) == 0) show();
  }

  /// Completes the last shard.
  counts close() {
    if (shard_) finish();
    show();
    if (on_terminal_) std::fputc('\n', stderr);
    return all_;
  }

 private:
  void finish() {
    shard_->close();
    shard_.reset();
    ++finished_;
  }

  void show() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::fprintf(stderr, "%s%zu of %zu shards, %llu samples, %.0f samples/s%s", on_terminal_ ? "\r" : "", finished_,
                 shards_, static_cast<unsigned long long>(all_.samples), static_cast<double>(all_.samples) / seconds,
                 on_terminal_ ? "" : "\n");
  }

  mr::shard_writer_options options_;
  std::size_t shards_, finished_;
  std::optional<mr::shard_writer> shard_;
  std::size_t at_ = 0;
  std::vector<mr::named_bytes> fields_;
  counts all_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool on_terminal_ = ::isatty(STDERR_FILENO) == 1;
};

struct settings {
  repack_options picture{};
  mr::shard_writer_options shards{};
  mr::shard_reader_options reading{};
  bool keep_damaged = false, codes = false;
  unsigned threads = 1;
};

settings read_settings(command_line& args) {
  settings s;
  s.picture.max_side = args.number("--max-side", s.picture.max_side);
  s.picture.short_side = args.number("--short-side", s.picture.short_side);
  s.picture.quality = args.number("--quality", s.picture.quality);
  s.picture.restarts = read_restarts(args);
  s.reading.limits.max_expansion = args.number("--max-expansion", s.reading.limits.max_expansion);
  s.codes = args.flag("--codes");
  s.keep_damaged = args.flag("--keep-damaged");
  s.threads = args.number("--threads", mr::usable_cores());
  s.shards.first_number = args.number("--first-number", s.shards.first_number);
  s.shards.max_samples = s.shards.max_bytes = std::numeric_limits<std::uint64_t>::max();
  if (s.picture.quality < 1 || s.picture.quality > 100) args.refuse("--quality is a number from 1 to 100");
  if (s.threads < 1 || s.threads > 1024) args.refuse("--threads is a number from 1 to 1024");
  return s;
}

repack_task task_of(const settings& s, std::vector<std::string> inputs) {
  repack_task task{.inputs = std::move(inputs),
                   .list = s.shards.pattern + ".repack",
                   .options = "max side " + std::to_string(s.picture.max_side) + ", short side " +
                              std::to_string(s.picture.short_side) + ", quality " + std::to_string(s.picture.quality) +
                              ", restarts per row " + s.picture.restarts.text() + ", first number " +
                              std::to_string(s.shards.first_number) + (s.codes ? ", codes" : "")};
  if (s.codes)
    task.make_common_line = [&s, shards = task.inputs] {
      return "codes: " + make_repack_codes({.shards = shards,
                                            .picture = s.picture,
                                            .threads = s.threads,
                                            .skip_damaged = s.keep_damaged,
                                            .reading = s.reading})
                             .text();
    };
  const mr::shard_writer names(s.shards);
  for (std::size_t i = 0; i < task.inputs.size(); ++i) task.outputs.push_back(names.path_of(s.shards.first_number + i));
  return task;
}

/// Reads and writes one sample at a time, in order; all threads repack concurrently.
void run_pipeline(repack_reader& from, writer& to, const settings& s) {
  using tbb::filter_mode;
  bool failed = false;
  const auto read = [&](tbb::flow_control& control) {
    auto next = std::make_shared<job>();
    try {
      auto sample = failed ? std::nullopt : from.next();
      if (!sample) {
        control.stop();
        return job_pointer();
      }
      next->sample = std::move(sample->record);
    } catch (...) {
      next->failure = std::current_exception();
      failed = true;
    }
    next->shard = from.shard();
    return next;
  };
  const auto work = [&](job_pointer current) {
    try {
      for (const mr::bytes& field : current->sample.fields()) {
        current->pictures.emplace_back();
        if (is_jpeg(field)) repack_field(*current, field, s.picture, s.keep_damaged);
      }
    } catch (...) {
      current->failure = mr::located_exception(current->sample.where());
    }
    return current;
  };
  const auto write = [&](const job_pointer& done) { to.write(*done); };
  tbb::task_arena arena(static_cast<int>(s.threads));
  arena.execute([&] {
    tbb::parallel_pipeline(2 * s.threads + 2,
                           tbb::make_filter<void, job_pointer>(filter_mode::serial_in_order, read) &
                               tbb::make_filter<job_pointer, job_pointer>(filter_mode::parallel, work) &
                               tbb::make_filter<job_pointer, void>(filter_mode::serial_in_order, write));
  });
}

std::string formatted(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double percent(double part, double total) { return total == 0 ? 0 : 100 * part / total; }

void print_results(const counts& all, const settings& s, const repack_task& task, const repack_progress& progress) {
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  const double before = static_cast<double>(all.bytes_before), after = static_cast<double>(all.bytes_after);
  const std::string line = number(all.samples) + " samples in " + number(task.inputs.size() - progress.count()) +
                           " shards, " + number(progress.count()) + " shards were finished; " + number(all.pictures) +
                           " images, " + formatted("%.1f MB", before * 1e-6) + " to " +
                           formatted("%.1f MB", after * 1e-6) +
                           formatted(" (%+.2f %%)", percent(after - before, before)) + "; of them " +
                           number(all.progressive) + " progressive, " + number(all.arithmetic) + " arithmetic, " +
                           number(all.shrunk) + " resized, " + number(all.damaged) + " damaged and kept";
  std::printf("%s\n", line.c_str());
  if (s.picture.restarts.enabled() && all.restarts.intervals != 0) {
    const auto& r = all.restarts;
    const auto share = [&](std::uint64_t mcus) {
      return percent(static_cast<double>(mcus), static_cast<double>(r.walk.all));
    };
    std::printf("restarts: every %.1f MCUs on average, %+.2f %% of the size; a mean random_resized_crop reads %.0f %% "
                "of the MCUs, %.0f %% without restarts\n",
                static_cast<double>(r.mcus) / static_cast<double>(r.intervals), percent(r.bytes, after - r.bytes),
                share(r.walk.with_restarts), share(r.walk.without_restarts));
  }
  if (s.codes)
    std::printf("codes: one pair for all images, words of at most 10 bits, DC 8, rare ones 16; kept in %s\n",
                mr::printable(task.list).c_str());
}

transcode::jpeg_codes codes_in(const repack_progress& progress, const repack_task& task) {
  const std::string line = progress.common_line();
  try {
    return transcode::jpeg_codes::from_text(std::string_view(line).substr(line.find(' ') + 1));
  } catch (const mr::setup_error&) {
    throw mr::setup_error("the second line of '" + mr::printable(task.list) + "' contains no codes",
                          "Start again with another pattern");
  }
}

void repack(command_line& args) {
  settings s = read_settings(args);
  const auto names = args.rest();
  if (names.size() != 2) args.refuse("expected the shards to read and a pattern for those to write");
  s.shards.pattern = names[1];
  const repack_task task = task_of(s, mr::list_shards(names[0]));
  const repack_progress progress(task);
  std::optional<transcode::jpeg_codes> codes;
  if (s.codes) s.picture.codes = &codes.emplace(codes_in(progress, task));

  repack_reader from(task.inputs, [&](std::size_t shard) { return progress.finished(shard); }, s.reading);
  writer to(s.shards, task.inputs.size(), progress.count());
  run_pipeline(from, to, s);
  print_results(to.close(), s, task, progress);
  for (const auto& [event, times] : from.skipped().counts())
    std::printf("%s: %llu\n", event, static_cast<unsigned long long>(times));
}

}   // namespace

int main(int argc, char** argv) { return run_program({argc, argv, usage_text}, repack); }
