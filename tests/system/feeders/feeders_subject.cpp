// A program that is trainer and feeder of the same flow, for feeders.py.
//
//   feeders_subject feed 127.0.0.1:8717 --threads 2                 # until SIGTERM
//   feeders_subject train --hosts 127.0.0.1:8717,127.0.0.1:8718     # prints a line for each batch
//
// FEEDERS_SLEEP_US is the duration of the callable, FEEDERS_SEED the seed, FEEDERS_CA a file of certificates.
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

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

int train(mr::session_options options, const std::string& hosts, std::uint64_t batches) {
  std::shared_ptr<mr::feeder_storage> storage;
  if (!hosts.empty()) {
    const char* const certificates = std::getenv("FEEDERS_CA");
    storage = mr::feeders({.hosts = split(hosts), .token = "a-token", .ca_file = certificates ? certificates : ""});
    options.rows = storage;
  }
  mr::session run{fed_flow(), options};
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  std::uint64_t delivered = 0;
  for (auto& b : run) {
    auto [number, draw, bytes] = b.columns();
    double sum = 0;
    for (std::size_t i = 0; i < b.size(); ++i) sum += number[i] * draw[i];
    std::printf("%llu %.17g %u %s\n", static_cast<unsigned long long>(b.step()), sum,
                mr::crc32c(std::as_bytes(std::span(bytes.data, b.size() * 1'000))), mr::to_text(b.position()).c_str());
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (++delivered == batches) break;
  }
  std::fprintf(stderr, "rows_per_second=%.1f\n", static_cast<double>(delivered * batch_rows) / seconds);
  if (storage) std::fprintf(stderr, "%s\n", mr::to_text(storage->statistics()).c_str());
  for (const auto& c : run.stats().counts)
    std::fprintf(stderr, "count %llu %s\n", static_cast<unsigned long long>(c.times), std::string(c.what).c_str());
  return 0;
}

}   // namespace

int main(int argc, char** argv) try {
  mr::session_options options{.epochs = 4, .threads = 2};
  std::string hosts, address;
  std::uint64_t batches = ~std::uint64_t{0};
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--hosts") hosts = argv[++i];
    else if (option == "--batches") batches = std::strtoull(argv[++i], nullptr, 10);
    else if (option == "--threads") options.threads = static_cast<unsigned>(std::atoi(argv[++i]));
    else if (option == "--resume") options.resume = argv[++i];
    else address = option;
  }
  if (argc > 1 && std::strcmp(argv[1], "feed") == 0) {
    mr::feed_rows(fed_flow(), {.listen = address, .token = "a-token", .session = options});
    return 0;
  }
  return train(options, hosts, batches);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
