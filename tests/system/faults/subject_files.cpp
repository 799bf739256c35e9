// The stages that write files and read them back.
#include "subject.hpp"

#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/item/position.hpp>
#include <millrace/metrics.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>

namespace mr = millrace;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A constant clock, so that files can be compared.
mr::instant noon() { return {.steady_ns = 1'000'000'000, .unix_ns = 1'700'000'000'000'000'000}; }

mr::log_options standing_still() { return {.hold = {}, .now = noon}; }

mr::row row_of(std::uint64_t step) {
  return {.step = step, .epoch = 0, .values = {{"loss", 1.0 / static_cast<double>(step + 1)}, {"rate", 0.1}}};
}

/// Adds each line of a file, and the number of losses that the log reports.
void add_lines(delivered& to, const std::string& path, const mr::log_counts& counts) {
  const spared here;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) to.add(line);
  to.told_lost = counts.failed + counts.dropped + counts.sink_errors;
}

void json_lines(const places& at, delivered& to) {
  mr::log out(standing_still(), mr::json_lines(at.out + "/run.jsonl"));
  for (std::uint64_t step = 0; step < 20; ++step) out.push(row_of(step));
  out.message("done");
  out.close();
  add_lines(to, at.out + "/run.jsonl", out.counts());
}

void status_line(const places& at, delivered& to) {
  const std::string path = at.out + "/status";
  int file;
  {
    const spared here;
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  struct closing {
    int file;
    ~closing() {
      const spared here;
      ::close(file);
    }
  } const at_end{file};
  mr::log out(standing_still(), mr::status_line({.file = file, .columns = 80, .plain_interval = {}}));
  for (std::uint64_t step = 0; step < 20; ++step) {
    out.push(row_of(step));
    out.flush();
  }
  out.close();
  add_lines(to, path, out.counts());
}

/// Adds each record: its length, then the payload with its checksums.
void tensorboard(const places& at, delivered& to) {
  const std::string folder = at.out + "/runs/first";
  mr::log out(standing_still(), mr::tensorboard({.folder = folder, .now = noon}));
  for (std::uint64_t step = 0; step < 20; ++step) out.push(row_of(step));
  out.close();
  const spared here;
  const auto counts = out.counts();
  to.told_lost = counts.failed + counts.dropped;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = text_of(entry.path());
    for (std::size_t begin = 0; begin < text.size();) {
      std::uint64_t length = 0;
      if (begin + 12 <= text.size()) std::memcpy(&length, text.data() + begin, 8);
      // The first record contains a name of this process.
      if (begin > 0) to.add(std::string_view(text).substr(begin, length + 16));
      begin += length + 16;
    }
  }
}

void metrics(const places& at, delivered& to) {
  mr::log out(standing_still(), mr::json_lines(at.out + "/metrics.jsonl"));
  mr::metrics m({.every = 4, .now = noon});
  auto loss = m.mean("loss");
  auto top = m.accuracy("top", {.top_k = 2});
  for (std::uint64_t step = 0; step < 20; ++step) {
    const float logits[] = {0.1F, 0.7F, static_cast<float>(step) / 20};
    const std::int32_t label[] = {static_cast<std::int32_t>(step % 3)};
    loss.add(static_cast<double>(step), 2);
    top.add(mr::tensor_view<const float, 2>{.data = logits, .shape = {1, 3}},
            mr::tensor_view<const std::int32_t, 1>{.data = label, .shape = {1}});
    m.count("samples", 8);
    m.maybe_log({.step = step, .epoch = 0}, out);
  }
  m.finish(out);
  out.close();
  add_lines(to, at.out + "/metrics.jsonl", out.counts());
}

/// Readers must only ever see complete shards: those of this run, or the previous ones.
void add_shards(delivered& to, const places& at) {
  const spared here;
  for (int i = 0; i < 3; ++i) to.add(text_of(at.out + "/s-" + std::to_string(i) + ".tar"));
}

void shard_writer(const places& at, delivered& to) {
  mr::shard_writer shards({.pattern = at.out + "/s-%d.tar", .max_samples = 4});
  const std::string payload(3'000, 'x');
  for (int i = 0; i < 12; ++i) shards.write("k" + std::to_string(i), {{"txt", payload}, {"cls", std::to_string(i)}});
  if (const auto written = shards.close(); written.samples != 12 || written.shards != 3)
    throw mr::conservation_error("the shard writer counts otherwise", "");
  add_shards(to, at);
}

/// Replaces a checkpoint's file twice. The file must contain one of the two versions completely.
void checkpoint(const places& at, delivered& to) {
  const std::string path = at.out + "/saved";
  for (const char letter : {'a', 'b'}) {
    mr::atomic_file file(path);
    file.append(std::string(5'000, letter));
    file.commit();
    const spared here;
    to.add(text_of(path));
  }
}

}  // namespace

std::span<const stage> file_stages() {
  static constexpr stage all[] = {{"json_lines", json_lines}, {"status_line", status_line},
                                  {"tensorboard", tensorboard}, {"metrics", metrics},
                                  {"shard_writer", shard_writer}, {"checkpoint", checkpoint}};
  return all;
}
