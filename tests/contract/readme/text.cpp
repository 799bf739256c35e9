// The README's text: 1,024 files of one line of 140 characters, a token each, make two batches of 32 rows.
#include "snippet.hpp"

#include <millrace/io/file/atomic_file.hpp>

#include <cstdio>

std::vector<std::uint32_t> tokenize(std::string_view text) { return {text.begin(), text.end()}; }

struct model {
  std::size_t steps = 0, characters = 0, separators = 0;

  void step(mr::tensor_view<const std::uint32_t, 2> ids) {
    if (ids.shape != std::array<std::size_t, 2>{32, 2049}) std::abort();
    ++steps;
    for (const std::uint32_t id : ids.host()) ++(id == 50256 ? separators : characters);
  }
};

int main() {
  for (int i = 0; i < 1024; ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "corpus-%04d.jsonl.gz", i);   // plain: what a file is, its content says
    mr::atomic_file file(name);
    file.append(std::string(140, static_cast<char>('a' + i % 26)) + "\n");
    file.publish();
  }
  model m;
  train(m);
  std::printf("%zu steps, %zu characters, %zu separators\n", m.steps, m.characters, m.separators);
  // The last row is filled up with separators.
  return m.steps == 2 && m.separators + m.characters == 2 * 32 * 2049 && m.characters > 127'000 ? 0 : 1;
}
