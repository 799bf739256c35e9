// A program that is trainer and feeder of the same flow, for feeders.py.
//
//   feeders_subject feed 127.0.0.1:8717 --threads 2                 # until SIGTERM
//   feeders_subject train --hosts 127.0.0.1:8717,127.0.0.1:8718     # prints a line for each batch
//   feeders_subject train --hosts 127.0.0.1:8717 --ranks 4          # 4 ranks in 4 threads, with 4 storages
//
// FEEDERS_SLEEP_US is the duration of the callable, FEEDERS_SEED the seed. FEEDERS_CA is a file of certificates for the
// trainer, FEEDERS_CERTIFICATE and FEEDERS_KEY are files of the feeder.
#include <millrace/adapt/feed_rows.hpp>
#include <millrace/adapt/feeders.hpp>
#include <millrace/base/crc32c.hpp>
#include <millrace/millrace.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace mr = millrace;

namespace {

constexpr int row_count = 16'000, batch_rows = 32;   // 500 batches in an epoch

struct fed_example {
  std::int32_t number;
  double draw;
  mr::tensor<std::uint8_t, 1> bytes;
};

long variable(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtol(text, nullptr, 10) : otherwise;
}

auto fed_flow() {
  std::vector<int> all(row_count);
  std::iota(all.begin(), all.end(), 0);
  const auto pause = std::chrono::microseconds(variable("FEEDERS_SLEEP_US", 1'000));
  const auto prepare = [pause](int n, mr::rng& random) {
    std::this_thread::sleep_for(pause);
    fed_example e{n, random.uniform(), {}};
    e.bytes = mr::tensor<std::uint8_t, 1>({1'000});
    for (std::size_t i = 0; i < 1'000; ++i) e.bytes[i] = static_cast<std::uint8_t>(random.below(256));
    return e;
  };
  return mr::from(std::move(all), {.seed = static_cast<std::uint64_t>(variable("FEEDERS_SEED", 7))}) |
         mr::shuffle({.window = 1'000}) | mr::map(prepare) |
         mr::batch<&fed_example::number, &fed_example::draw, &fed_example::bytes>({.size = batch_rows});
}

std::string file_of(const char* name) {
  const char* const path = std::getenv(name);
  return path ? path : "";
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

/// Returns a line for each batch.
std::string train(mr::session_options options, const std::string& hosts, std::uint64_t batches) {
  std::shared_ptr<mr::feeder_storage> storage;
  if (!hosts.empty()) {
    storage = mr::feeders({.hosts = split(hosts), .token = "a-token", .ca_file = file_of("FEEDERS_CA")});
    options.rows = storage;
  }
  std::string lines;
  mr::session run{fed_flow(), options};
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  std::uint64_t delivered = 0;
  for (auto& b : run) {
    auto [number, draw, bytes] = b.columns();
    double sum = 0;
    for (std::size_t i = 0; i < b.size(); ++i) sum += number[i] * draw[i];
    char line[100];
    std::snprintf(line, sizeof line, "%llu %.17g %u ", static_cast<unsigned long long>(b.step()), sum,
                  mr::crc32c(std::as_bytes(std::span(bytes.data, b.size() * 1'000))));
    lines += line + mr::to_text(b.position()) + "\n";
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (++delivered == batches) break;
  }
  std::fprintf(stderr, "rows_per_second=%.1f\n", static_cast<double>(delivered * batch_rows) / seconds);
  if (storage) std::fprintf(stderr, "%s\n", mr::to_text(storage->statistics()).c_str());
  for (const auto& c : run.stats().counts)
    std::fprintf(stderr, "count %llu %s\n", static_cast<unsigned long long>(c.times), std::string(c.what).c_str());
  return lines;
}

/// Trains all ranks at the same time.
int train_ranks(const mr::session_options& options, const std::string& hosts, std::uint64_t batches,
                std::size_t ranks) {
  std::vector<std::string> lines(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      mr::session_options mine = options;
      mine.world = mr::world{.rank = r, .size = ranks};
      lines[r] = train(mine, hosts, batches);
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& text : lines) std::fputs(text.c_str(), stdout);
  return 0;
}

}   // namespace

int main(int argc, char** argv) try {
  mr::session_options options{.epochs = 4, .threads = 2};
  std::string hosts, address;
  std::uint64_t batches = ~std::uint64_t{0};
  std::size_t ranks = 1;
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--hosts") hosts = argv[++i];
    else if (option == "--batches") batches = std::strtoull(argv[++i], nullptr, 10);
    else if (option == "--ranks") ranks = std::strtoull(argv[++i], nullptr, 10);
    else if (option == "--threads") options.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    else if (option == "--resume") options.resume = argv[++i];
    else address = option;
  }
  if (argc > 1 && std::strcmp(argv[1], "feed") == 0) {
    options.world = mr::world{.size = ranks};
    mr::feed_rows(fed_flow(), {.listen = address, .token = "a-token", .certificate = file_of("FEEDERS_CERTIFICATE"),
                               .key = file_of("FEEDERS_KEY"), .session = options});
    return 0;
  }
  return train_ranks(options, hosts, batches, ranks);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
