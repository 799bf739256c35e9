// program: first_program README_1
// The README's first program, unchanged, on generated shards; stopped after three steps.
#include "snippet.hpp"

#include <cstdio>
#include <filesystem>

struct enough {};

struct model {
  int steps = 0;

  void step(mr::tensor_view<const std::uint8_t, 4> pixels, mr::tensor_view<const std::int32_t, 1> labels) {
    if (pixels.shape != std::array<std::size_t, 4>{256, 224, 224, 3} || labels.size() != 256) std::abort();
    for (const std::int32_t label : labels)
      if (label != 7) std::abort();
    if (++steps == 3) throw enough();
  }
};

int main() {
  mr::shard_writer shards({.pattern = "train-%03d.tar", .max_samples = 2});
  const auto picture = mr::encode_jpeg(mr::image({24, 32, 3}));
  for (int i = 0; i < 2 * 147; ++i) shards.write(std::to_string(i), {{"jpg", picture}, {"cls", "7"}});
  shards.close();
  model m;
  try {
    train(m);
  } catch (const enough&) {
    std::puts("three steps");
    return 0;
  }
  return 1;
}

// program: predictions README_2
// The README's predictions, by key: the class of an image is dark or bright.
#include "snippet.hpp"

#include <sstream>

struct model {
  std::vector<int> predict(const mr::tensor_view<std::uint8_t, 4>& pixels) const {
    std::vector<int> classes;
    for (std::size_t i = 0; i < pixels.shape[0]; ++i) {
      pixels(i, 0, 31, 2) = 7;   // one element of the slot
      if (pixels[i][0](31, 2) != 7) std::abort();
      classes.push_back(pixels[i][16](16, 0) == 255 ? 1 : 0);
    }
    return classes;
  }
};

int main() {
  mr::shard_writer shards({.pattern = "test-%03d.tar", .max_samples = 10});
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    mr::image gray({32, 32, 3});
    for (auto row : gray)
      for (auto pixel : row)
        for (std::uint8_t& p : pixel) p = i < 64 ? 60 : 200;
    const std::string key = "n" + std::to_string(i % 7) + "/" + std::to_string(i), label = i < 64 ? "0" : "1";
    shards.write(key, {{"jpg", mr::encode_jpeg(gray)}, {"cls", label}});
    expected += key + " " + label + " " + label + "\n";
  }
  shards.close();
  std::ostringstream out;
  model m;
  predict(m, out);
  return out.str() == expected ? 0 : 1;
}

// program: own_stage stages_1
// The user-defined stage: 3 epochs of 5 clips of 57 frames are 3 x 35 windows, and 3 x 2 batches of 16.
#include "snippet.hpp"

#include <cstdio>

window stack(const clip& c, std::size_t first, std::size_t count) {
  const auto& frame = c.frames[first].shape();
  return {mr::tensor<std::uint8_t, 4>({count, frame[0], frame[1], frame[2]}), static_cast<std::int32_t>(first)};
}

struct model {
  int steps = 0;
  std::int32_t expected = 0;

  void step(mr::tensor_view<const std::uint8_t, 5> pixels, mr::tensor_view<const std::int32_t, 1> first_frame) {
    if (pixels.shape != std::array<std::size_t, 5>{16, 8, 6, 5, 3}) std::abort();
    if (steps++ % 2 == 0) expected = 0;
    for (const std::int32_t first : first_frame) {
      if (first != expected) std::abort();
      expected = (expected + 8) % 56;
    }
  }
};

int main() {
  const std::vector<clip> clips(5, clip{std::vector<mr::image>(57, mr::image({6, 5, 3}))});
  model m;
  train(clips, m);
  if (m.steps == 6) std::puts("six steps");
  return m.steps == 6 ? 0 : 1;
}

// program: mix sources_2
// The mix: 294 photos at seven tenths and 50 drawings at three; stopped after five steps and resumed.
#include "snippet.hpp"

#include <cstdio>

struct enough {};

struct model {
  std::vector<std::int32_t> labels{};
  std::size_t max_steps = ~std::size_t{0};
  std::string position{};

  void step(mr::tensor_view<const std::int32_t, 1> some, mr::tensor_view<const float, 1> weights, std::string after) {
    int drawings = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      labels.push_back(some[i]);
      if ((some[i] >= 1'000) != (weights[i] == 0.5F)) std::abort();
      drawings += some[i] >= 1'000 ? 1 : 0;
    }
    if (drawings != 3) std::abort();
    position = std::move(after);
    if (--max_steps == 0) throw enough();
  }
};

int main() {
  mr::shard_writer photos({.pattern = "photos-%03d.tar", .max_samples = 2});
  for (int i = 0; i < 2 * 147; ++i) photos.write(std::to_string(i), {{"cls", std::to_string(i)}});
  photos.close();
  mr::shard_writer drawings({.pattern = "drawings-%d.tar", .max_samples = 5});
  for (int i = 1'000; i < 1'050; ++i) drawings.write(std::to_string(i), {{"id", std::to_string(i)}});
  drawings.close();
  model uninterrupted, interrupted{.max_steps = 5};
  train(uninterrupted, {});
  try {
    train(interrupted, {});
  } catch (const enough&) {
  }
  model resumed{.labels = interrupted.labels};
  train(resumed, interrupted.position);
  std::printf("%zu labels, %zu after the resume\n", uninterrupted.labels.size(),
              resumed.labels.size() - interrupted.labels.size());
  return uninterrupted.labels.size() == 840 && resumed.labels == uninterrupted.labels ? 0 : 1;
}

// program: curriculum sources_4
// The curriculum, stopped after the step 150 and resumed: its shares at the start and at the end.
#include "snippet.hpp"

#include <algorithm>
#include <cstdio>

struct enough {};

struct model {
  std::vector<std::int32_t> labels{};
  std::size_t max_steps = ~std::size_t{0};
  std::string position{};

  void step(mr::tensor_view<const std::int32_t, 1> some, std::string after) {
    for (std::size_t i = 0; i < some.size(); ++i) labels.push_back(some[i]);
    position = std::move(after);
    if (--max_steps == 0) throw enough();
  }
  auto clean(std::size_t begin, std::size_t end) const {
    const auto at = [&](std::size_t step) { return labels.begin() + static_cast<std::ptrdiff_t>(step * rows); };
    return std::count_if(at(begin), at(end), [](std::int32_t label) { return label >= 1'000; });
  }
};

int main() {
  mr::shard_writer web({.pattern = "web-%03d.tar", .max_samples = 2});
  for (int i = 0; i < 2 * 147; ++i) web.write(std::to_string(i), {{"cls", std::to_string(i)}});
  web.close();
  mr::shard_writer clean({.pattern = "clean-%d.tar", .max_samples = 5});
  for (int i = 1'000; i < 1'050; ++i) clean.write(std::to_string(i), {{"cls", std::to_string(i)}});
  clean.close();
  model uninterrupted, interrupted{.max_steps = 150};
  train(uninterrupted, {});
  try {
    train(interrupted, {});
  } catch (const enough&) {
  }
  model resumed{.labels = interrupted.labels};
  train(resumed, interrupted.position);
  std::printf("clean: %td of the first 100, %td of the steps 150 to 180, %td of the last 200\n",
              uninterrupted.clean(0, 10), uninterrupted.clean(150, 180), uninterrupted.clean(180, 200));
  return resumed.labels == uninterrupted.labels && uninterrupted.clean(150, 180) == 100 &&
                 uninterrupted.clean(180, 200) == 200 ? 0 : 1;
}

// program: text text_2
// The text: 1,024 files of one line of 140 characters, one token each, are two batches of 32 rows.
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
    std::snprintf(name, sizeof name, "corpus-%04d.jsonl.gz", i);   // plain text: files are recognized by content
    mr::atomic_file file(name);
    file.append(std::string(140, static_cast<char>('a' + i % 26)) + "\n");
    file.publish();
  }
  model m;
  train(m);
  std::printf("%zu steps, %zu characters, %zu separators\n", m.steps, m.characters, m.separators);
  // Separators complete the last row.
  return m.steps == 2 && m.separators + m.characters == 2 * 32 * 2049 && m.characters > 127'000 ? 0 : 1;
}

// program: metrics trainers_4
// The training log: 250 steps of 4 samples, with rows at steps 100, 200 and 250.
#include "snippet.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

struct sample {
  std::int32_t pixels, label;
};

struct model {
  std::vector<float> scores = std::vector<float>(4 * 3);

  double step(mr::tensor_view<const std::int32_t, 1> pixels, mr::tensor_view<const std::int32_t, 1> labels) {
    if (pixels.size() != labels.size()) std::abort();
    return 0.5;
  }
  mr::tensor_view<const float, 2> logits() const { return {.data = scores.data(), .shape = {4, 3}}; }
};

int main() {
  std::filesystem::create_directories("logs");
  mr::session run{mr::from(std::vector<int>(1000, 2)) | mr::map([](int n) { return sample{n, n}; }) |
                  mr::batch<&sample::pixels, &sample::label>({.size = 4})};
  model m;
  train(run, m);
  std::ifstream rows("train.jsonl");
  int count = 0;
  for (std::string line; std::getline(rows, line); ++count) std::printf("%s\n", line.c_str());
  return count == 3 ? 0 : 1;
}

// program: notices reports_1
// The notices: a truncated shard becomes an alert, and the start of the run is in the log.
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
