// remote: bytes and photographs from a local server per CPU second, compared with curl, local files and other readers
//
// nginx serves from the page cache over the loopback interface. Only the CPU time of the reader's process counts, not
// that of the server. The readers alternate.
//   bytes: `curl` reads a file by one request and discards it. mr::remote() prefetches it in parts of 8 MiB on several
//     connections; the bytes are copied into the reader's buffer.
//   paced: photographs, with 20 ms before each answer, for a trainer whose steps last twice as long as loading from
//     local files. Results are the longer wait and the CPU time per image, compared with the same run on local files.
//     Pairs run local, remote, remote, local, or the reverse, so that a changing load favors no side.
//   peers: s3torchconnector and webdataset's pipe from curl, which pip installs: bytes of the same shards, undecoded.
#include "harness.hpp"
#include "parts/lines_of_program.hpp"
#include "parts/web_server.hpp"
#include "photo_example.hpp"
#include "photo_sets.hpp"

#include <millrace/adapt/remote.hpp>
#include <millrace/base/random.hpp>
#include <millrace/io/file/posix_files.hpp>
#include <millrace/millrace.hpp>
#include <millrace/sources/shards.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace mr = millrace;

namespace {

constexpr std::int64_t delay_ns = 20'000'000;
constexpr std::size_t batch = 256;
constexpr std::size_t passes = 8;   // over the set for peers: a single pass would mostly measure their start

/// Reads complete objects. Returns their size in bytes.
std::uint64_t read_all(mr::storage place, const std::vector<std::string>& urls) {
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  std::uint64_t bytes = 0;
  for (const std::string& url : urls) {
    const auto file = place->open(url);
    const mr::byte_range all{};
    file->will_read({&all, 1});
    std::uint64_t at = 0;
    for (std::size_t got = 1; got > 0; at += got) got = file->read_at(at, buffer);
    bytes += at;
  }
  return bytes;
}

// ---- bytes ----

double read_seconds(const std::string& url, const bench::web_server& server, std::uint64_t bytes) {
  const bench::clocks before = bench::now();
  if (read_all(mr::remote({.ca_file = server.certificate}), {url}) != bytes)
    throw mr::setup_error("the object does not have the size of its file", "Check the server");
  return (bench::now() - before).cpu_s;
}

void compare_with_curl(bench::harness& run, const std::string& name, const std::string& url,
                       const bench::web_server& server, std::uint64_t bytes) {
  std::vector<double> curl, ours, ratio;
  const double gigabytes = 1e-9 * static_cast<double>(bytes);
  for (int round = 0; round < (run.quick() ? 3 : 25); ++round) {
    const auto other = bench::cpu_seconds_of(
        {"curl", "-sf", "--http1.1", "--cacert", server.certificate, "-o", "/dev/null", url});
    if (!other) throw mr::setup_error("curl cannot read " + url, "Run curl manually");
    curl.push_back(gigabytes / *other);
    ours.push_back(gigabytes / read_seconds(url, server, bytes));
    ratio.push_back(ours.back() / curl.back());
  }
  std::printf("%s: GB per CPU second: curl %s, remote %s; ratio %s\n", name.c_str(), bench::spread(curl).c_str(),
              bench::spread(ours).c_str(), bench::spread(ratio).c_str());
  run.result("remote_" + name + "_curl", bench::median(curl), "GB/CPU-s");
  run.result("remote_" + name, bench::median(ours), "GB/CPU-s");
  run.result("remote_" + name + "_of_curl", bench::median(ratio), "", bench::at_least(0.8));
}

void measure_bytes(bench::harness& run, const bench::web_server& server, const std::string& file) {
  const std::uint64_t bytes = std::uint64_t{run.quick() ? 128U : 1024U} << 20;
  {
    std::ofstream out(bench::data_folder() + "/" + file, std::ios::binary);
    mr::rng random({.seed = 1});
    std::vector<std::uint64_t> some(1 << 17);
    for (auto& word : some) word = random.bits();
    for (std::uint64_t at = 0; at < bytes; at += some.size() * sizeof some[0])
      out.write(reinterpret_cast<const char*>(some.data()), std::ssize(some) * 8);
  }
  ::sync();   // or writeback would slow both sides
  compare_with_curl(run, "http", server.plain + file, server, bytes);
  compare_with_curl(run, "tls", server.tls + file, server, bytes);
  std::filesystem::remove(bench::data_folder() + "/" + file);
}

// ---- paced ----

using example = bench::photo_example;

struct photo_run {
  double period_s = 0;   // a batch
  double cpu_ms = 0;     // an image
  double wait = 0;       // share of the trainer's time
};

template <class Source>
photo_run run_photos(Source source, double step_s, int batches) {
  mr::session run{std::move(source) | mr::shuffle({.window = 512}) | mr::map(bench::prepare_photo) |
                      mr::batch<&example::pixels, &example::label>({.size = batch}),
                  {.epochs = mr::endless, .notice = mr::quiet}};
  const auto step = [step_s] {
    if (step_s > 0) mr::detail::posix_files::sleep_ns(static_cast<std::int64_t>(1e9 * step_s));
  };
  for (int i = 0; i < 8; ++i) {
    static_cast<void>(run.next());
    step();
  }
  const bench::clocks before = bench::now();
  double waited_s = 0;
  for (int i = 0; i < batches; ++i) {
    const double request_s = bench::now().wall_s;
    static_cast<void>(run.next());
    waited_s += bench::now().wall_s - request_s;
    step();
  }
  const bench::clocks spent = bench::now() - before;
  return {.period_s = spent.wall_s / batches,
          .cpu_ms = 1e3 * spent.cpu_s / (batches * static_cast<double>(batch)),
          .wait = waited_s / spent.wall_s};
}

/// Returns the shards' names below a folder or a server.
std::vector<std::string> names_below(const std::string& root, const bench::photo_set& set) {
  std::vector<std::string> names;
  for (const std::string& name : set.names) names.push_back(root + name.substr(bench::data_folder().size() + 1));
  return names;
}

template <class Source>
void measure_paced(bench::harness& run, const char* name, const bench::photo_set& set, const bench::web_server& server,
                   Source source_of) {
  const bench::delaying_relay far(server.plain_port, delay_ns);
  const std::string url = "http://127.0.0.1:" + std::to_string(far.port) + "/";
  std::vector<double> loads, waits, local_waits, more_wait, cost, more;
  for (int i = 0; i < 3; ++i) loads.push_back(run_photos(source_of(set.names, mr::storage()), 0, 24).period_s);
  const double load_s = bench::median(loads);
  const int batches = run.quick() ? 24 : 48;
  for (int pair = 0; pair < (run.quick() ? 3 : 8); ++pair) {
    photo_run local, remote;   // sums of two runs
    for (const bool outer : {true, false, false, true}) {
      const bool here = outer == (pair % 2 == 0);
      const photo_run one = here ? run_photos(source_of(set.names, mr::storage()), 2 * load_s, batches)
                                 : run_photos(source_of(names_below(url, set), mr::remote()), 2 * load_s, batches);
      photo_run& sum = here ? local : remote;
      sum.cpu_ms += one.cpu_ms;
      sum.wait += one.wait;
    }
    local_waits.push_back(50 * local.wait);
    waits.push_back(50 * remote.wait);
    more_wait.push_back(waits.back() - local_waits.back());
    cost.push_back(500 * remote.cpu_ms);
    more.push_back(100 * (remote.cpu_ms / local.cpu_ms - 1));
  }
  const bench::interval within = bench::interval_of_median(more);
  std::printf("paced, %s: a batch of %zu loads in %.0f ms, a step lasts twice that; data wait %s %%, from local files "
              "%s %%; %s us of CPU per image, %s %% more than from local files, at 95 %% between %.1f and %.1f\n",
              name, batch, 1e3 * load_s, bench::spread(waits).c_str(), bench::spread(local_waits).c_str(),
              bench::spread(cost, "%.0f").c_str(), bench::spread(more).c_str(), within.low, within.high);
  run.result(std::string("remote_paced_more_wait_") + name, bench::median(more_wait), "%", bench::at_most(2));
  run.result(std::string("remote_paced_more_cpu_") + name, bench::median(more), "%", bench::at_most(15));
}

// ---- peers ----

/// Returns bytes per CPU second of a peer; nothing if it is skipped, with a message.
std::optional<double> rate_of_peer(bench::harness& run, const std::string& peer, const std::string& server,
                                   const std::vector<std::string>& names) {
  std::string command = "python3 " MILLRACE_BENCH_PEERS "/remote.py " + peer + " " + server;
  for (const std::string& name : names) command += " " + name;
  std::optional<double> rate;
  bench::for_each_line_of(command, [&](const std::string& line) {
    double bytes = 0, seconds = 0;
    if (line.starts_with("skipped ")) run.finding("peer " + peer, line);
    else if (std::sscanf(line.c_str(), "%lf %lf", &bytes, &seconds) == 2 && seconds > 0) rate = bytes / seconds;
  });
  return rate;
}

struct size_of_record {
  std::uint64_t bytes;
};

/// Reads the records of a set without decoding them. Returns bytes per CPU second.
double read_records(const std::vector<std::string>& urls) {
  const bench::clocks before = bench::now();
  mr::session run{mr::shards(urls, {.index = mr::index::off, .storage = mr::remote()}) |
                      mr::map([](const mr::record& r) { return size_of_record{r["jpg"].size() + r["cls"].size()}; }) |
                      mr::batch<&size_of_record::bytes>({.size = 64, .drop_last = false}),
                  {.epochs = passes, .notice = mr::quiet}};
  std::uint64_t bytes = 0;
  for (const auto& b : run)
    for (const std::uint64_t one : b.template get<&size_of_record::bytes>().host()) bytes += one;
  return static_cast<double>(bytes) / (bench::now() - before).cpu_s;
}

void measure_peers(bench::harness& run, const bench::photo_set& set, const bench::web_server& server) {
  const std::vector<std::string> once = names_below("", set), urls = names_below(server.plain, set);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < passes; ++i) names.insert(names.end(), once.begin(), once.end());
  const std::string address = server.plain.substr(0, server.plain.size() - 1);
  const auto compare = [&](const std::string& peer, const std::function<double()>& ours) {
    std::vector<double> theirs, rates, ratio;
    for (int round = 0; round < (run.quick() ? 1 : 5); ++round) {
      const auto other = rate_of_peer(run, peer, address, names);
      if (!other) return;
      theirs.push_back(1e-9 * *other);
      rates.push_back(1e-9 * ours());
      ratio.push_back(rates.back() / theirs.back());
    }
    std::printf("peers: GB per CPU second: %s %s, ours %s; ratio %s\n", peer.c_str(), bench::spread(theirs).c_str(),
                bench::spread(rates).c_str(), bench::spread(ratio).c_str());
    run.result("remote_" + peer, bench::median(theirs), "GB/CPU-s");
    run.result("remote_beside_" + peer, bench::median(ratio), "x", bench::at_least(3));
  };
  compare("webdataset", [&] { return read_records(urls); });
  compare("s3torchconnector", [&] {
    const mr::storage place = mr::remote(
        {.s3 = {.endpoint = address, .credentials = [] { return mr::s3_credentials{"anyone", "anything"}; }}});
    std::vector<std::string> objects;
    for (const std::string& name : names) objects.push_back("s3://" + name);
    const bench::clocks before = bench::now();
    const auto bytes = static_cast<double>(read_all(place, objects));
    return bytes / (bench::now() - before).cpu_s;
  });
}

}   // namespace

int main(int argc, char** argv) {
  return bench::run_guarded([&] {
    bench::harness run(argc, argv, "remote");
    const std::string work = std::filesystem::absolute(bench::data_folder() + "/remote").string();
    std::filesystem::create_directories(work);
    const bench::web_server server(std::filesystem::absolute(bench::data_folder()).string(), work);
    if (!server.answers("remote/nginx.conf")) return run.nothing_measured("nginx, openssl or curl is not installed");
    if (run.wants("bytes")) measure_bytes(run, server, "remote/shard.bin");
    if (!run.wants("paced") && !run.wants("peers")) return run.finish();
    const bench::photo_set set = bench::make_photo_set(bench::photo_sets[0]);
    if (run.wants("paced")) {
      measure_paced(run, "shards", set, server, [](const auto& names, const mr::storage& place) {
        return mr::shards(names, {.index = mr::index::off, .storage = place});
      });
      measure_paced(run, "indexed", set, server,
                    [](const auto& names, const mr::storage& place) { return mr::shards(names, {.storage = place}); });
    }
    if (run.wants("peers")) measure_peers(run, set, server);
    return run.finish();
  });
}
