// The time budget of a text trainer. A small language model learns from real text three times: tokenized on the
// caller's thread, on the workers, and once before the training.
//
//   train_text                                     # the licenses that every Debian has in /usr/share/common-licenses
//   train_text --work data 'my-{0..9}.txt.gz'      # your text, one document per line; or a folder of it
//   train_text --every 32                          # a step 32 times as fast: it learns each 32nd token of a batch
//
// The tokenizer (SentencePiece, byte pairs) is trained on the same text first. Files are written to WORK.
#include "command_line.hpp"
#include "language_model.hpp"
#include "token_shards.hpp"

#include <sentencepiece_trainer.h>

#include <chrono>
#include <filesystem>
#include <optional>

namespace mr = millrace;

namespace {

struct settings {
  std::vector<std::string> texts{};
  std::string work{};
  std::size_t vocabulary = 512, length = 65, rows = 32, every = 16;
  std::uint64_t steps = 400;
  std::optional<unsigned> threads{};
};

constexpr std::size_t shuffle_window = 2048;
constexpr std::uint64_t seed = 1;

/// Returns the files of Debian's base-files. Other entries of that folder are links to them.
std::vector<std::string> licences() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator("/usr/share/common-licenses"))
    if (file.is_regular_file() && !file.is_symlink()) names.push_back(file.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

mr::sentencepiece train_tokenizer(const settings& s) {
  // SentencePiece reads plain files, with names joined by commas. All text is therefore written to one file.
  const std::string all = s.work + "/text.txt", model = s.work + "/tokenizer";
  {
    mr::atomic_file file(all);
    for (const std::string& name : s.texts) {
      mr::block_pool pool;
      mr::line_reader lines(std::make_unique<mr::file_source>(name), pool);
      while (const auto line = lines.next()) {
        file.append(line->text());
        file.append("\n");
      }
    }
    file.commit();
  }
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"input", all},
                                                                  {"model_prefix", model},
                                                                  {"model_type", "bpe"},
                                                                  {"vocab_size", std::to_string(s.vocabulary)},
                                                                  {"hard_vocab_limit", "false"},
                                                                  {"minloglevel", "2"}});
  if (!status.ok()) throw mr::data_error("no tokenizer could be trained: " + status.ToString(), "Add more text");
  return mr::sentencepiece(model + ".model");
}

struct outcome {
  double loss = 0;   // of the last tenth of the steps
  double waits = 0;
  double tokens_per_second = 0;
};

/// Runs the same loop with different flows and threads.
template <class Flow>
outcome train(const settings& s, Flow flow, std::optional<unsigned> threads, std::size_t vocabulary) {
  language_model model({.vocabulary = vocabulary});
  mr::session<&mr::packed::ids> run{std::move(flow),
                                    {.epoch_batches = s.steps, .threads = threads, .notice = mr::quiet}};
  outcome o;
  const auto started = std::chrono::steady_clock::now();
  for (auto& b : run) {
    const double loss = model.learn(b.get<&mr::packed::ids>().span(), s.length, s.every, b.step());
    if (b.step() >= s.steps - s.steps / 10) o.loss += loss / static_cast<double>(s.steps / 10);
  }
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - started;
  o.tokens_per_second = static_cast<double>(s.steps * s.rows * (s.length - 1)) / duration.count();
  o.waits = run.stats().data_wait_share();
  return o;
}

void print(const char* how, const outcome& o) {
  std::printf("%-44s waits for data %5.1f %% of the time, %8.0f tokens/s, loss %.3f\n", how, 100 * o.waits,
              o.tokens_per_second, o.loss);
}

void program(command_line& args) {
  settings s;
  s.work = args.text("--work", "text-work");
  s.vocabulary = args.number("--vocabulary", s.vocabulary);
  s.steps = args.number("--steps", s.steps);
  s.every = std::max<std::size_t>(1, args.number("--every", s.every));
  s.threads = args.number("--threads", s.threads);
  if (s.steps < 10) args.refuse("--steps is less than 10");
  for (const std::string& pattern : args.rest())
    for (auto& name : mr::list_texts(pattern)) s.texts.push_back(std::move(name));
  if (s.texts.empty()) s.texts = licences();
  std::filesystem::create_directories(s.work);

  const mr::sentencepiece tokenizer = train_tokenizer(s);
  const auto from_text = [&] {
    return mr::lines(s.texts, {.seed = seed, .skip_empty = true}) | mr::map(tokenizer) |
           mr::pack({.length = s.length, .separator = tokenizer.end_of_text()}) |
           mr::shuffle({.window = shuffle_window}) | mr::batch<&mr::packed::ids>({.size = s.rows});
  };
  const std::size_t vocabulary = tokenizer.vocabulary_size();
  print("(a) tokenised by the caller, between steps:", train(s, from_text(), 0, vocabulary));
  print("(b) tokenised by the workers:", train(s, from_text(), s.threads, vocabulary));

  const auto cached = write_token_shards({.texts = s.texts, .prefix = s.work + "/tokens-", .threads = s.threads},
                                         tokenizer);
  print("(c) tokenised before, read from token files:",
        train(s,
              mr::token_files(cached.files, {.length = s.length, .seed = seed}) |
                  mr::shuffle({.window = shuffle_window}) | mr::batch<&mr::packed::ids>({.size = s.rows}),
              s.threads, vocabulary));
  std::printf("summary: documents=lines tokens=%llu vocabulary=%zu\n", static_cast<unsigned long long>(cached.tokens),
              vocabulary);
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: train_text [--work FOLDER] [--vocabulary N] [--steps N] [--every N] "
                      "[--threads N] [TEXTS...]"},
                     program);
}
