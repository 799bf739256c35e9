// A run that may be killed at any moment. tests/system/exact/kill.py kills and restarts it.
//
//   durable_run FOLDER --data SHARDS --batches-per-save 3 --threads 2 ...          # resumes from FOLDER/saved
//   durable_run --indexes SHARDS                                   # the state of each index: good, missing, ...
//
// Each delivered sample adds a line "position-in-the-run number random-value" to FOLDER/log. FOLDER/saved contains the
// length of the log and the resume point of the same moment, and is replaced atomically. A restart truncates the log to
// that length.
#include "../../../examples/command_line.hpp"

#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/index/format/index_file.hpp>
#include <millrace/run/session.hpp>
#include <millrace/sources/shards.hpp>
#include <millrace/sources/list/shard_list.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/shuffle.hpp>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace mr = millrace;

namespace {

struct example {
  std::int32_t number;
  double random_value;
};

example prepare(const mr::record& r, mr::rng& random) {
  return {r["n"].as<std::int32_t>(), random.uniform()};
}

void must(bool good, const std::string& what) {
  if (!good) throw mr::io_error(what + " failed", "Check the disk");
}

class durable_log {
 public:
  explicit durable_log(std::string folder) : folder_(std::move(folder)) {
    std::size_t length_bytes = 0;
    std::ifstream saved(folder_ + "/saved");
    if (saved >> length_bytes) {
      saved.ignore();
      std::getline(saved, resume_);
    }
    file_ = ::open((folder_ + "/log").c_str(), O_RDWR | O_CREAT, 0666);
    must(file_ != -1 && ::ftruncate(file_, static_cast<off_t>(length_bytes)) == 0, "opening the log");
    must(::lseek(file_, 0, SEEK_END) == static_cast<off_t>(length_bytes), "finding the end of the log");
  }
  ~durable_log() { ::close(file_); }

  const std::string& resume() const { return resume_; }

  void append(const std::string& text) {
    must(::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "writing to the log");
  }

  void save(const std::string& resume) {
    must(::fsync(file_) == 0, "bringing the log to the disk");
    mr::detail::atomic_file<> file(folder_ + "/saved");
    file.append(std::to_string(::lseek(file_, 0, SEEK_END)) + "\n" + resume + "\n");
    file.commit();
  }

 private:
  std::string folder_, resume_;
  int file_ = -1;
};

void run(command_line& args) {
  const std::string data = args.text("--data", "");
  const auto epochs = args.number("--epochs", std::uint64_t{2});
  const auto batches_per_save = args.number("--batches-per-save", std::uint64_t{3});
  const auto step_us = args.number("--step-us", 0U);
  const int threads = args.number("--threads", 2);
  const auto folder = args.rest();
  if (folder.size() != 1) args.refuse("expected one folder");

  durable_log log(folder[0]);
  if (!log.resume().empty() && mr::parse_position(log.resume()).epoch == epochs) return;
  mr::session session{mr::shards(data, {.seed = 3}) | mr::shuffle({.window = 500}) | mr::map(prepare) |
                          mr::batch<&example::number, &example::random_value>({.size = 24}),
                      {.epochs = epochs, .threads = threads, .notice = mr::quiet, .resume = log.resume()}};
  std::printf("indexed\n");
  std::fflush(stdout);
  for (auto& b : session) {
    const auto [numbers, random_values] = b.columns();
    std::string lines;
    for (std::size_t i = 0; i < b.size(); ++i) {
      char line[80];
      std::snprintf(line, sizeof line, "%zu %d %.17g\n",
                    static_cast<std::size_t>(b.step()) * 24 + i, numbers.host()[i], random_values.host()[i]);
      lines += line;
    }
    log.append(lines);
    if (step_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(step_us));
    if ((b.step() + 1) % batches_per_save == 0 || b.position().epoch == epochs) log.save(mr::to_text(b.position()));
  }
  std::printf("closing\n");   // checksums are written now
  std::fflush(stdout);
}

void show_indexes(command_line& args) {
  std::map<std::string, int> counts;
  for (const auto& pattern : args.rest())
    for (const std::string& shard : mr::list_shards(pattern)) {
      const mr::detail::loaded_index loaded = mr::detail::load_index(mr::detail::index_path(shard),
                                                                    mr::detail::identify_shard(shard));
      const char* const names[] = {"good", "missing", "stale", "damaged"};
      std::string name = names[static_cast<int>(loaded.state)];
      if (loaded.state == mr::detail::index_file_state::good) {
        const std::uint32_t checksums = loaded.index.known_checksums();
        const bool all = checksums == loaded.index.members();
        name += checksums == 0 ? ", no checksums" : all ? ", all checksums" : ", some checksums";
      }
      ++counts[name];
    }
  for (const auto& [name, count] : counts) std::printf("%s: %d\n", name.c_str(), count);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv, "usage: durable_run FOLDER --data SHARDS ... | durable_run --indexes SHARDS"},
                     [](command_line& args) { args.flag("--indexes") ? show_indexes(args) : run(args); });
}
