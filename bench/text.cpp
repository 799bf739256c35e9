// text: lines of plain and compressed files, and a complete text pipeline compared with its tokenizer alone
//
// The text consists of words of Debian's licenses: lines of 1 KB, the same in each run, in the page cache. Reading is
// measured in CPU time of its thread, the pipeline (lines, SentencePiece, pack, batch) in that of the process after a
// warm-up. gz is compared with zlib's gzread() on the same file, the pipeline with tokenizing the same lines from
// memory. Memory is the growth of allocated and resident bytes per batch: the median of 40 differences between states
// with full buffers, after a warm-up of two passes, in which pools and buffers reach their sizes.
#include "harness.hpp"

#include <millrace/adapt/sentencepiece.hpp>
#include <millrace/base/random.hpp>
#include <millrace/text.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <malloc.h>
#include <sentencepiece_trainer.h>
#include <zlib.h>

namespace mr = millrace;

namespace {

constexpr std::size_t line_bytes = 1023, file_lines = 16'384;

struct corpus {
  std::vector<std::string> plain{};
  std::string packed{}, model{};
};

std::vector<std::string> words_of_licences() {
  std::vector<std::string> words;
  for (const char* name : {"GPL-3", "GPL-2", "LGPL-2.1", "Apache-2.0", "Artistic", "MPL-2.0", "GFDL-1.3"}) {
    std::ifstream file(std::string("/usr/share/common-licenses/") + name);
    words.insert(words.end(), std::istream_iterator<std::string>(file), {});
  }
  if (words.empty()) throw mr::setup_error("/usr/share/common-licenses contains no text", "Run this on Debian");
  return words;
}

corpus make_corpus() {
  const std::string folder = bench::data_folder() + "/text";
  corpus c{.packed = folder + "/packed.gz", .model = folder + "/tokenizer.model"};
  for (int i = 0; i < 4; ++i) c.plain.push_back(folder + "/" + std::to_string(i) + ".txt");
  if (!std::filesystem::exists(c.model)) {
    std::filesystem::create_directories(folder);
    const auto words = words_of_licences();
    mr::rng random({.seed = 1});
    for (const std::string& name : c.plain) {
      std::ofstream file(name);
      for (std::size_t i = 0; i < file_lines; ++i) {
        std::string line;
        while (line.size() < line_bytes) line += words[random.below(words.size())] + " ";
        line.resize(line_bytes);
        file << line << '\n';
      }
    }
    if (std::system(("gzip -c " + c.plain[0] + " > " + c.packed).c_str()) != 0)
      throw mr::setup_error("gzip failed", "Install gzip");
    const auto status = sentencepiece::SentencePieceTrainer::Train({{"input", c.plain[0]},
                                                                    {"input_sentence_size", "2000"},
                                                                    {"model_prefix", folder + "/tokenizer"},
                                                                    {"model_type", "bpe"},
                                                                    {"vocab_size", "2000"},
                                                                    {"hard_vocab_limit", "false"},
                                                                    {"minloglevel", "2"}});
    if (!status.ok()) throw mr::data_error("SentencePiece cannot train a tokenizer: " + status.ToString(), "");
  }
  return c;
}

struct amount {
  double cpu_s = 0;
  std::uint64_t units = 0;
  double rate() const { return static_cast<double>(units) / cpu_s; }
};

amount read_lines(const std::string& name) {
  amount done;
  mr::block_pool pool;
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  mr::line_reader reader(std::make_unique<mr::file_source>(name), pool);
  while (const auto line = reader.next()) done.units += line->size() + 1;
  done.cpu_s = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
  return done;
}

amount inflate_alone(const std::string& name) {
  amount done;
  std::vector<char> buffer(std::size_t{512} << 10);
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  gzFile file = gzopen(name.c_str(), "rb");
  gzbuffer(file, 512 << 10);
  for (int got; (got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;)
    done.units += static_cast<std::uint64_t>(got);
  gzclose(file);
  done.cpu_s = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
  return done;
}

std::vector<std::string> lines_of(const std::string& name) {
  std::vector<std::string> all;
  mr::block_pool pool;
  mr::line_reader reader(std::make_unique<mr::file_source>(name), pool);
  while (const auto line = reader.next()) all.emplace_back(line->text());
  return all;
}

amount tokenize_alone(const mr::sentencepiece& tokenizer, const std::vector<std::string>& lines) {
  amount done;
  const double before = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  for (const std::string& line : lines) done.units += tokenizer(line).size() + 1;
  done.cpu_s = bench::seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
  return done;
}

/// Memory of the process.
struct memory {
  double resident_bytes = 0, allocated_bytes = 0;
};
memory memory_now() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  const struct mallinfo2 heap = mallinfo2();
  return {.resident_bytes = pages * 4096, .allocated_bytes = static_cast<double>(heap.uordblks + heap.hblkhd)};
}

std::vector<double> scaled(std::vector<double> values, double by) {
  for (double& v : values) v *= by;
  return values;
}

/// Returns the median difference between consecutive values. Pools grow in rare steps, when more of their blocks are in
/// use at once than ever before; a leak grows in every step.
double usual_step(const std::vector<double>& values) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < values.size(); ++i) steps.push_back(values[i] - values[i - 1]);
  return bench::median(steps);
}

/// One token per four bytes, because memory does not depend on their values.
std::vector<std::uint32_t> tokens_of_bytes(std::string_view text) {
  std::vector<std::uint32_t> tokens(text.size() / 4);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<unsigned char>(text[4 * i]);
  return tokens;
}

auto flow_of(const corpus& c, auto tokenizer, std::uint32_t separator) {
  return mr::lines(c.plain, {.seed = 1}) | mr::shuffle({.window = 1024}) | mr::map(tokenizer) |
         mr::pack({.length = 2049, .separator = separator}) | mr::batch<&mr::packed::ids>({.size = 16});
}

/// Waits until the process is idle, because every buffer is full.
void settle() {
  for (double spent = 1; spent > 1e-3;) {
    const double before = bench::now().cpu_s;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    spent = bench::now().cpu_s - before;
  }
}

/// Consumes batches from full buffers, and waits until they are full again, so that as many batches were produced.
template <class Session>
amount take_batches(Session& run, std::uint64_t count) {
  amount done;
  const bench::clocks before = bench::now();
  for (std::uint64_t i = 0; i < count; ++i) done.units += run.next().template get<&mr::packed::ids>().size();
  settle();
  done.cpu_s = (bench::now() - before).cpu_s;
  return done;
}

int measure(bench::harness& run) {
  const corpus c = make_corpus();
  const int rounds = run.quick() ? 5 : 15;
  if (run.wants("lines")) {
    std::vector<double> plain, packed, against;
    for (int i = 0; i < rounds; ++i) {
      plain.push_back(1e-9 * read_lines(c.plain[1]).rate());
      const double ours = read_lines(c.packed).rate(), zlib = inflate_alone(c.packed).rate();
      packed.push_back(1e-6 * ours);
      against.push_back(ours / zlib);
    }
    std::printf("plain %s GB/s, gz %s MB/s, to zlib %s\n", bench::spread(plain).c_str(), bench::spread(packed).c_str(),
                bench::spread(against).c_str());
    run.result("plain", bench::median(plain), "GB/s", bench::at_least(1));
    run.result("gz_to_zlib", bench::median(against), "", bench::at_least(0.95));
  }
  if (run.wants("tokens")) {
    const mr::sentencepiece tokenizer(c.model);
    auto lines = lines_of(c.plain[1]);
    lines.resize(lines.size() / 4);
    // A small read-ahead, so that it is full from the warm-up on.
    mr::session all{
        flow_of(c, tokenizer, tokenizer.end_of_text()),
        {.epochs = mr::endless, .threads = 1, .read_ahead_bytes = std::size_t{24} << 20, .notice = mr::quiet}};
    const std::uint64_t batches = run.quick() ? 20 : 60;
    take_batches(all, batches);   // a warm-up
    std::vector<double> alone, whole, share;
    for (int i = 0; i < rounds; ++i) {
      alone.push_back(1e-6 * tokenize_alone(tokenizer, lines).rate());
      whole.push_back(1e-6 * take_batches(all, batches).rate());
      share.push_back(whole.back() / alone.back());
    }
    std::printf("tokens a CPU second: alone %s million, in the pipeline %s, share %s\n", bench::spread(alone).c_str(),
                bench::spread(whole).c_str(), bench::spread(share).c_str());
    run.result("tokens_alone", bench::median(alone), "M/s");
    run.result("tokens_in_pipeline", bench::median(whole), "M/s");
    run.result("pipeline_to_tokenizer", bench::median(share), "", bench::at_least(0.95));
  }
  if (run.wants("memory")) {
    mr::session all{flow_of(c, tokens_of_bytes, 0), {.epochs = mr::endless, .threads = 1, .notice = mr::quiet}};
    constexpr std::uint64_t pass_batches = 4 * file_lines * (line_bytes / 4 + 1) / (16 * 2049);
    take_batches(all, 2 * pass_batches);
    const memory first = memory_now();
    std::vector<double> resident{first.resident_bytes}, allocated{first.allocated_bytes};
    const std::uint64_t step = run.quick() ? 100 : 500;
    for (int i = 0; i < 40; ++i) {
      take_batches(all, step);
      const memory now = memory_now();
      resident.push_back(now.resident_bytes);
      allocated.push_back(now.allocated_bytes);
    }
    std::printf("after %llu batches: resident %.1f MB, allocated %.1f MB; in %llu more: %s and %s MB\n",
                static_cast<unsigned long long>(2 * pass_batches), 1e-6 * first.resident_bytes,
                1e-6 * first.allocated_bytes, static_cast<unsigned long long>(40 * step),
                bench::spread(scaled(resident, 1e-6), "%.2f").c_str(),
                bench::spread(scaled(allocated, 1e-6), "%.2f").c_str());
    const auto each = static_cast<double>(step);
    run.result("resident_growth", usual_step(resident) / each, "bytes a batch", bench::at_most(16));
    run.result("allocated_growth", usual_step(allocated) / each, "bytes a batch", bench::at_most(16));
  }
  return run.finish();
}

}   // namespace

int main(int argc, char** argv) {
  bench::harness run(argc, argv, "text");
  return bench::run_guarded([&] { return measure(run); });
}
