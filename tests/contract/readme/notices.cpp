// The README's notices: a cut shard is sent as an alert, and the start of the run to the log.
#include "snippet.hpp"

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>

struct model {
  std::size_t rows = 0;

  void step(mr::tensor_view<const std::int32_t, 1> labels) { rows += labels.size(); }
};

int main() {
  mr::shard_writer shards({.pattern = "train-%03d.tar", .max_samples = 8});
  for (int i = 0; i < 16; ++i) shards.write("k" + std::to_string(i), {{"cls", std::to_string(i)}});
  shards.close();
  std::filesystem::resize_file("train-001.tar", std::filesystem::file_size("train-001.tar") / 2 + 100);
  model m;
  std::ostringstream log;
  std::string lost;
  train(m, log, [&](const std::string& shard, const std::string&) { lost = shard; });
  std::printf("%zu rows; lost: %s\n%s", m.rows, lost.c_str(), log.str().c_str());
  return m.rows >= 8 && m.rows < 16 && lost == "train-001.tar" && !log.str().empty() ? 0 : 1;
}
