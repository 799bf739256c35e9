// A program for web.py: reads objects and runs flows over the network, with short timeouts and small parts.
//
//   web_subject read URL FILE WAYS      # reads URL in these ways, one letter each, and compares it with a local file
//   web_subject digest PATTERN THREADS RANK WORLD [BATCHES]   # the digest of a run, resumed after BATCHES batches
//   web_subject first URL               # the size and version of an object
//   web_subject begin PATTERN LANES WINDOW    # only the first batch of a run, of 256 samples
//   web_subject set PATTERN FILE        # writes a set index
//
// MILLRACE_TEST_SEED draws the reads. Other variables: WEB_PARTS (bytes of a part), WEB_CA, WEB_HTTP2, WEB_GS,
// WEB_CACHE (a folder), WEB_CACHE_BYTES, WEB_HEADER, WEB_STALL (s), WEB_BUDGET (s), WEB_MEMORY (bytes),
// WEB_REQUESTS (in flight), WEB_HEDGE (the share), WEB_FIGURES (prints them to stderr).
// Prints "equal", or an error to stderr: the exit status is 1, and 2 for a missing object.
#include <millrace/adapt/remote.hpp>
#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace mr = millrace;

namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value ? value : otherwise;
}

mr::remote_options options() {
  mr::remote_options o{.requests = std::stoull(variable("WEB_REQUESTS", "16")),
                       .part_bytes = static_cast<std::size_t>(std::stoull(variable("WEB_PARTS", "131072"))),
                       .memory_bytes = static_cast<std::size_t>(std::stoull(variable("WEB_MEMORY", "4194304"))),
                       .ca_file = variable("WEB_CA", ""),
                       .http2 = !variable("WEB_HTTP2", "").empty(),
                       .connect_limit = std::chrono::seconds(30),
                       .stall_limit = std::chrono::duration<double>(std::stod(variable("WEB_STALL", "2"))),
                       .stall_bytes_per_second = 10'000,
                       .retry = {.attempts = 12,
                                 .limit = std::chrono::duration<double>(std::stod(variable("WEB_BUDGET", "300"))),
                                 .first_pause = std::chrono::milliseconds(10),
                                 .longest_pause = std::chrono::milliseconds(100)},
                       .hedge = {.share = std::stod(variable("WEB_HEDGE", "0.05")),
                                 .least_wait = std::chrono::milliseconds(150)}};
  o.cache = {.folder = variable("WEB_CACHE", ""),
             .bytes = std::stoull(variable("WEB_CACHE_BYTES", "1000000000000")),
             .keep_free_share = 0};
  o.gs.endpoint = variable("WEB_GS", "");
  if (const std::string header = variable("WEB_HEADER", ""); !header.empty())
    o.headers = {{header.substr(0, header.find(": ")), header.substr(header.find(": ") + 2)}};
  return o;
}

struct differing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads a range, and compares it.
void compare(mr::byte_source& file, const std::vector<std::byte>& expected, std::uint64_t from, std::size_t bytes) {
  std::vector<std::byte> got(bytes);
  const std::size_t count = mr::detail::read_fully(file, from, got);
  const std::size_t there = from < expected.size() ? std::min<std::size_t>(bytes, expected.size() - from) : 0;
  if (count != there)
    throw differing("got " + std::to_string(count) + " bytes from " + std::to_string(from) + " on, expected " +
                    std::to_string(there));
  if (!std::equal(got.begin(), got.begin() + std::ptrdiff_t(there), expected.begin() + std::ptrdiff_t(from)))
    throw differing("other bytes from " + std::to_string(from) + " on");
}

void read_in(char way, mr::byte_source& file, const std::vector<std::byte>& expected, std::mt19937& random) {
  const auto below = [&](std::uint64_t bound) { return bound == 0 ? 0 : random() % bound; };
  const mr::byte_range all{};
  if (way == 's' || way == 'p') {   // sequentially, with and without an announcement
    if (way == 's') file.will_read({&all, 1});
    for (std::uint64_t at = 0; at <= expected.size();) {
      const std::size_t bytes = 1 + below(100'000);
      compare(file, expected, at, bytes);
      at += bytes;
    }
  } else if (way == 'w') {          // all at once
    compare(file, expected, 0, expected.size() + 1);
  } else if (way == 'r') {          // at random offsets
    for (int i = 0; i < 12; ++i) compare(file, expected, below(expected.size() + 10), 1 + below(200'000));
  } else if (way == 'j') {          // forward with jumps, like a reader of headers, with some reads ahead
    file.will_read({&all, 1});
    for (std::uint64_t at = 0; at < expected.size(); at += below(300'000)) {
      compare(file, expected, at, 512);
      if (below(4) == 0) compare(file, expected, at + below(500'000), 1);
    }
  } else {                          // announced ranges, read in their order, some of them skipped
    std::vector<mr::byte_range> ranges;
    for (std::uint64_t at = below(50'000); at < expected.size(); at += below(150'000)) {
      ranges.push_back({at, 1 + below(80'000)});
      at += ranges.back().size_bytes;
    }
    file.will_read(ranges);
    for (const mr::byte_range& r : ranges)
      if (below(5) != 0) compare(file, expected, r.offset_bytes, static_cast<std::size_t>(r.size_bytes));
  }
}

int read(const std::string& url, const std::string& local, const std::string& ways) {
  std::vector<std::byte> expected(std::filesystem::file_size(local));
  std::ifstream(local, std::ios::binary).read(reinterpret_cast<char*>(expected.data()), std::ssize(expected));
  auto place = mr::remote(options());
  std::mt19937 random(static_cast<unsigned>(std::stoul(variable("MILLRACE_TEST_SEED", "1"))));
  const auto print_statistics = [&] {
    if (!variable("WEB_FIGURES", "").empty()) std::fprintf(stderr, "%s\n", mr::to_text(place.statistics()).c_str());
  };
  try {
    for (const char way : ways) {
      const auto file = place->open(url);
      if (!file) {
        std::fprintf(stderr, "there is no %s\n", url.c_str());
        return 2;
      }
      read_in(way, *file, expected, random);
    }
  } catch (...) {
    print_statistics();
    throw;
  }
  print_statistics();
  std::puts("equal");
  return 0;
}

struct example {
  std::int32_t label;
  double random_value;
};

/// The end of a run.
struct ending {
  std::string text{};
  std::uint64_t digest = 0, batches = 0;
};

mr::storage place_of(const std::string& pattern) {
  return pattern.find("://") == std::string::npos ? mr::storage() : mr::remote(options());
}

example prepare(const mr::record& r, mr::rng& rng) {
  return {r["cls"].as<std::int32_t>(), rng.uniform()};
}

/// Runs a flow to its end, or for the given number of batches.
ending run(const std::string& pattern, int threads, mr::world world, const ending& before, std::uint64_t batches) {
  const mr::shards_options source{.seed = 7, .storage = place_of(pattern), .notice = mr::quiet};
  auto flow = mr::shards(pattern, source) | mr::shuffle({.window = 64}) | mr::map(prepare) |
              mr::batch<&example::label, &example::random_value>({.size = 24});
  mr::session run{std::move(flow), {.epochs = 2, .threads = threads, .notice = mr::quiet, .world = world,
                                    .resume = before.text}};
  ending end = before;
  for (auto& b : run) {
    end = {mr::to_text(b.position()), b.position().digest, end.batches + 1};
    if (end.batches == batches) break;
  }
  return end;
}

int digest(int count, char** arguments) {
  const std::string pattern = arguments[2];
  const int threads = std::stoi(arguments[3]);
  const mr::world world{.rank = std::stoul(arguments[4]), .size = std::stoul(arguments[5])};
  ending end;
  if (count > 6) end = run(pattern, threads, world, end, std::stoull(arguments[6]));
  end = run(pattern, threads, world, end, 0);
  std::printf("%llu batches, digest %016llx\n", static_cast<unsigned long long>(end.batches),
              static_cast<unsigned long long>(end.digest));
  return 0;
}

int begin(const std::string& pattern, std::size_t lanes, std::size_t window) {
  const mr::shards_options source{.seed = 7, .storage = place_of(pattern), .notice = mr::quiet};
  auto flow = mr::shards(pattern, source) | mr::shuffle({.window = window}) | mr::map(prepare) |
              mr::batch<&example::label>({.size = 256});
  for (auto& b : mr::session{std::move(flow),
                             {.epochs = 1, .epoch_batches = 1, .threads = 2, .notice = mr::quiet, .lanes = lanes}})
    std::printf("%zu samples, digest %016llx\n", b.size(), static_cast<unsigned long long>(b.position().digest));
  return 0;
}

int write_set(const std::string& pattern, const std::string& file) {
  const auto index = mr::write_set_index(pattern, file, {.storage = place_of(pattern), .notice = mr::quiet});
  std::printf("%zu shards\n", index.shards);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string what = count > 2 ? arguments[1] : "";
    if (what == "read" && count == 5) return read(arguments[2], arguments[3], arguments[4]);
    if (what == "digest" && count >= 6) return digest(count, arguments);
    if (what == "begin" && count == 5) return begin(arguments[2], std::stoull(arguments[3]), std::stoull(arguments[4]));
    if (what == "set" && count == 4) return write_set(arguments[2], arguments[3]);
    if (what == "first" && count == 3) {
      const auto object = mr::remote(options())->find(arguments[2]);
      if (!object) return 2;
      std::printf("%llu %s\n", static_cast<unsigned long long>(object->size_bytes), object->version.c_str());
      return 0;
    }
    std::fprintf(stderr, "usage: web_subject read|digest|begin|set|first ...\n");
  } catch (const differing& wrong) {
    std::fprintf(stderr, "WRONG: %s\n", wrong.what());
    return 3;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return 1;
}
