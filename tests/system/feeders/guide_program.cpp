// The program of examples/guide/feeders.md, which feeders.py launches by two shells and by mpirun.
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

#include <millrace/adapt/feed_rows.hpp>
#include <millrace/adapt/feeders.hpp>
#include <millrace/millrace.hpp>
namespace mr = millrace;

struct example {
  std::int32_t number, square;
};

auto flow() {
  std::vector<int> all(4'000);
  std::iota(all.begin(), all.end(), 0);
  return mr::from(std::move(all), {.seed = 7}) | mr::shuffle({.window = 1'000}) | mr::map([](int n) {
           std::this_thread::sleep_for(std::chrono::milliseconds(1));
           return example{n, n * n};
         }) |
         mr::batch<&example::number, &example::square>({.size = 40});
}

long sum = 0;
template <class Batch>
void step(const Batch& b) {
  auto [number, square] = b.columns();
  for (std::size_t i = 0; i < b.size(); ++i) sum += static_cast<long>(b.step() + 1) * (number[i] + square[i]);
  if (b.step() % 50 == 0) std::printf("sum %ld\n", sum);
}

int main(int argc, char** argv) {   // --feed ADDRESS [--ranks N], or --feeders HOSTS
  const std::string side = argv[1], address = argv[2], token = std::getenv("MILLRACE_TOKEN");
  mr::session_options options{.epochs = 3};
  if (side == "--feed") {   // returns after SIGTERM
    options.world = mr::world{.size = argc > 4 ? std::stoul(argv[4]) : 1};
    mr::feed_rows(flow(), {.listen = address, .token = token, .session = options});
  } else {
    options.world = mr::world_from_launcher();
    options.rows = mr::feeders({.hosts = {address}, .token = token});
    mr::session run{flow(), options};
    for (auto& b : run) step(b);
    std::puts(run.rows_text().c_str());   // the work of each feeder
  }
}
