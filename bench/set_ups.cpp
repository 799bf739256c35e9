// set_ups: eleven trainings with different bottlenecks; verdicts of ablations compared with those of live runs
//
//   sh bench/run.sh set_ups                                # real decoding, throttled storage, steps of given length
//   sh bench/run.sh set_ups --only 4                       # one of them
//
// The verdict by the run's own statistics (report/verdict/verdict.hpp) is compared with that of the parts measured
// alone (parts/bound_verdict.hpp); rounds alternate. One set-up runs concurrently with programs that use every core
// twice, one under a quota of half a core (if this may be set). The run's statistics must name that; ablations cannot.
#include "harness.hpp"
#include "parts/bound_variants.hpp"
#include "parts/bound_verdict.hpp"
#include "parts/emulated_accelerator.hpp"
#include "photo_sets.hpp"

#include <millrace/base/machine.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// A quota on the CPU time of this process during the lifetime of the object, by a separate cgroup. active() is false
/// without the rights or the controller that it needs.
class cpu_quota {
 public:
  explicit cpu_quota(double cores) {
    const std::string quota = std::to_string(static_cast<long>(cores * 100'000)), period = "100000";
    for (const std::string& parent : millrace::detail::cgroup_folders()) {
      if (active() || !write(parent + "/cgroup.subtree_control", "+cpu") || !create_cgroup(parent)) continue;
      if (!write(folder_ + "/cpu.max", quota + " " + period) || !enter()) drop();
    }
    for (const std::string& parent : millrace::detail::cgroup_folders("cpu")) {
      if (active() || !create_cgroup(parent)) continue;
      if (!write(folder_ + "/cpu.cfs_period_us", period) || !write(folder_ + "/cpu.cfs_quota_us", quota) || !enter())
        drop();
    }
  }
  cpu_quota(const cpu_quota&) = delete;
  cpu_quota& operator=(const cpu_quota&) = delete;
  ~cpu_quota() {
    if (!active()) return;
    write(parent_ + "/cgroup.procs", std::to_string(::getpid()));
    drop();
  }

  bool active() const noexcept { return !folder_.empty(); }

 private:
  static bool write(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "we");
    if (!file) return false;
    const bool put = std::fputs(text.c_str(), file) >= 0;
    return (std::fclose(file) == 0) && put;   // the kernel answers when the text is flushed
  }
  bool create_cgroup(const std::string& parent) {
    const std::string folder = parent + "/millrace-bench-" + std::to_string(::getpid());
    if (::mkdir(folder.c_str(), 0755) != 0) return false;
    parent_ = parent;
    folder_ = folder;
    return true;
  }
  bool enter() { return write(folder_ + "/cgroup.procs", std::to_string(::getpid())); }
  void drop() {
    ::rmdir(folder_.c_str());
    folder_.clear();
  }

  std::string parent_, folder_;
};

/// Other programs that use the cores: processes that only compute, during the lifetime of the object.
class busy_neighbors {
 public:
  explicit busy_neighbors(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == -1) throw std::system_error(errno, std::generic_category(), "fork");
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (std::atomic<unsigned> n{0};;) n.fetch_add(1, std::memory_order_relaxed);
      }
      children_.push_back(child);
    }
  }
  busy_neighbors(const busy_neighbors&) = delete;
  busy_neighbors& operator=(const busy_neighbors&) = delete;
  ~busy_neighbors() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

}   // namespace

namespace mr = millrace;

namespace {

struct set_up {
  std::string name{};
  bench::bound_settings settings{};
  mr::bound_by planted = mr::bound_by::cpu;
  std::string where{};   ///< of CPU work
  const char* compressed_by = nullptr;
  double copy_bytes_per_s = 12e9;
  bool has_neighbors = false;
  double quota_cores = 0;   // none
};

/// Storage in megabytes per second and milliseconds per read, for a readable table.
struct storage_of {
  double megabytes_per_s = 0, ms_a_read = 0;
  operator bench::throttle() const {
    return {.bytes_per_second = 1e6 * megabytes_per_s,
            .latency_ns = static_cast<std::uint64_t>(1e6 * ms_a_read),
            .jitter = 0.3};
  }
};

std::vector<set_up> all_set_ups(double seconds) {
  using mr::bound_by;
  const auto with = [seconds](const storage_of& storage, double step_ms, unsigned io_threads = 4,
                              std::size_t batch = 64) {
    bench::bound_settings s;
    s.storage = storage;
    s.step_s = 1e-3 * step_ms;
    s.io_threads = io_threads;
    s.batch = batch;
    s.seconds = seconds;
    return s;
  };
  return {
      {"12 MB/s", with({.megabytes_per_s = 12}, 10), bound_by::io},
      {"100 ms for each read, 2 I/O threads", with({.ms_a_read = 100}, 10, 2), bound_by::io},
      {"gzip, 8 MB/s, batch 32", with({.megabytes_per_s = 8}, 5, 2, 32), bound_by::io, "", "gzip"},
      {"60 MB/s, step 300 ms", with({.megabytes_per_s = 60}, 300), bound_by::consumer},
      {"30 ms for each read, 6 I/O threads, step 400 ms", with({.ms_a_read = 30}, 400, 6), bound_by::consumer},
      {"copies at 30 MB/s", with({}, 10), bound_by::transfer, "", nullptr, 30e6},
      {"page cache", with({}, 5), bound_by::cpu, "decode"},
      {"300 MB/s, batch 128", with({.megabytes_per_s = 300}, 5, 4, 128), bound_by::cpu, "decode"},
      {"bzip2", with({}, 5), bound_by::cpu, "unpack", "bzip2"},
      {"page cache, each core used twice by others", with({}, 5), bound_by::cpu_starved, "decode", nullptr, 12e9, true},
      {"page cache, half a core by quota", with({}, 5), bound_by::cpu_starved, "decode", nullptr, 12e9, false, 0.5}};
}

/// Returns the names of the compressed shards, which are generated once; nothing if the program is missing.
std::vector<std::string> compressed(const std::vector<std::string>& names, const std::string& program) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) {
    files.push_back(names[i] + "." + program);
    if (std::filesystem::exists(files.back())) continue;
    const std::string part = files.back() + ".part";
    if (std::system((program + " -c '" + names[i] + "' > '" + part + "' 2>/dev/null").c_str()) != 0) return {};
    std::filesystem::rename(part, files.back());
  }
  return files;
}

struct verdicts {
  bench::ablation_verdict ablated{};
  mr::verdict live{};
};

verdicts judge(const set_up& u, const std::vector<std::string>& names, unsigned rounds) {
  bench::emulated_accelerator chip(
      {.pinned_bytes_per_second = u.copy_bytes_per_s, .pageable_bytes_per_second = u.copy_bytes_per_s / 2});
  bench::bound_runs runs(u.settings, names, chip);
  std::optional<busy_neighbors> neighbors;
  if (u.has_neighbors) neighbors.emplace(2 * mr::usable_cores());
  std::optional<cpu_quota> quota;
  if (u.quota_cores > 0) quota.emplace(u.quota_cores);
  std::map<std::string, std::vector<double>> rates;
  std::vector<double> raw;
  verdicts v;
  for (unsigned round = 0; round < rounds; ++round) {
    raw.push_back(bench::raw_read_speed(names, runs.used(), u.settings.io_threads, u.settings.seconds / 2));
    for (const char* name : {"step-only", "h2d+step", "cpu-only", "io-only"})
      rates[name].push_back(runs.run(name).samples_per_s);
    v.live = mr::judge(runs.run("warm").statistics);
  }
  const auto rate = [&](const char* name) { return bench::median(rates[name]); };
  const auto batch = static_cast<double>(u.settings.batch);
  // A trainer's blocking copy from pageable memory has half the speed.
  const double copy_s = batch * (1 / rate("h2d+step") - 1 / rate("step-only")) / 2;
  v.ablated = bench::judge_ablations({.step = rate("step-only"),
                                      .transfer = batch / std::max(copy_s, 1e-9),
                                      .cpu = rate("cpu-only"),
                                      .io = rate("io-only"),
                                      .raw_read = bench::median(raw) / runs.sample_bytes()});
  return v;
}

int measure(int argc, char** argv) {
  bench::harness run(argc, argv, "set_ups");
  const std::vector<std::string> photos = bench::make_photo_set(bench::photo_sets[0]).names;
  const std::vector<set_up> all = all_set_ups(run.quick() ? 0.7 : 1.5);
  std::size_t agreed = 0, planted = 0, tried = 0;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const set_up& u = all[i];
    if (!run.wants(std::to_string(i + 1))) continue;
    const std::vector<std::string> names = u.compressed_by ? compressed(photos, u.compressed_by) : photos;
    if (names.empty()) {
      std::printf("%zu. %s: skipped, %s is not installed\n", i + 1, u.name.c_str(), u.compressed_by);
      continue;
    }
    if (u.quota_cores > 0 && !cpu_quota(u.quota_cores).active()) {
      std::printf("%zu. %s: skipped, no quota can be set here (root may)\n", i + 1, u.name.c_str());
      continue;
    }
    const verdicts v = judge(u, names, run.quick() ? 1 : 3);
    const bool same = bench::agree(v.ablated, v.live);
    // If other programs use the cores of CPU-bound workers, the verdict names them.
    const bool is_starved = u.planted == mr::bound_by::cpu && v.live.what == mr::bound_by::cpu_starved;
    const bool as_planted = (v.live.what == u.planted || is_starved) && (u.where.empty() || v.live.where == u.where);
    ++tried;
    agreed += same;
    planted += as_planted;
    rows.push_back("| " + u.name + " | " + v.ablated.sentence() + " | " + v.live.sentence() + " | " +
                   (same ? "yes" : "no") + " |");
    std::printf("%zu. %s\n     ablations: %s\n     live run:  %s%s%s\n", i + 1, u.name.c_str(),
                v.ablated.sentence().c_str(), v.live.sentence().c_str(), same ? "" : "   <- they differ",
                as_planted ? "" : "   <- not the planted bottleneck");
  }
  std::printf("\n| set-up | ablations | live run | agree |\n|---|---|---|---|\n");
  for (const std::string& row : rows) std::printf("%s\n", row.c_str());
  run.result("set_ups", static_cast<double>(tried), "tried");
  run.result("verdicts_agree", static_cast<double>(agreed), "of_" + std::to_string(tried),
             bench::at_least(0.9 * static_cast<double>(tried)));
  run.result("as_planted", static_cast<double>(planted), "of_" + std::to_string(tried));
  return run.finish();
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] { return measure(argc, argv); });
}
