// The loop of a vision-language trainer: an image, a question of any length and its answer in one sample.
//
//   train_pairs                                  # creates 1,600 images with questions, and learns to answer
//   train_pairs --stop-after 100                 # exits in the middle, as a killed process would,
//   train_pairs --resume                         # and resumes from the last checkpoint, to the same bytes
//   train_pairs --rotate-queries                 # each image with the words of another: half cannot be learned
//
// Gradients are accumulated over --accumulate batches. After each epoch the model is validated, and the best one is
// stored. Metrics are accumulated in the step and logged at an interval. Files of WORK: last.bin (model, optimizer and
// resume point of one moment), best.bin, train.jsonl.
#include "checkpoint_note.hpp"
#include "command_line.hpp"
#include "pair_model.hpp"
#include "pair_shards.hpp"

#include <millrace/millrace.hpp>
#include <millrace/shards.hpp>

#include <cstdlib>
#include <numeric>
#include <optional>

namespace mr = millrace;

namespace {

constexpr std::size_t side = 12;

struct example {
  mr::picture pixels;
  mr::ragged<std::uint32_t> words;
  std::int32_t answer;
};

example prepare(const mr::record& r) {
  return {mr::jpeg(r["jpg"]).resize(side, side), mr::ragged(query_words(r["txt"].text()), {.max_length = 16}),
          r["cls"].as<std::int32_t>()};
}

struct settings {
  std::string work{};
  std::uint64_t epochs = 10, seed = 1, save_every = 10, stop_after = 0;   // updates
  std::size_t batch = 32, accumulate = 2;
  std::optional<unsigned> threads{};
  bool resume = false, rotate_queries = false;
};

settings read_settings(command_line& args) {
  settings s;
  s.work = args.text("--work", "millrace-pairs");
  s.epochs = args.number("--epochs", s.epochs);
  s.seed = args.number("--seed", s.seed);
  s.batch = args.number("--batch", s.batch);
  s.accumulate = args.number("--accumulate", s.accumulate);
  s.save_every = args.number("--save-every", s.save_every);
  s.stop_after = args.number("--stop-after", s.stop_after);
  s.threads = args.number("--threads", s.threads);
  s.resume = args.flag("--resume");
  s.rotate_queries = args.flag("--rotate-queries");
  if (!args.rest().empty()) args.refuse("expected options only");
  if (s.epochs == 0 || s.save_every == 0 || s.accumulate == 0 || s.batch % s.accumulate != 0 || s.batch == 0)
    args.refuse("expected --epochs and --save-every of at least 1, and --batch a multiple of --accumulate");
  return s;
}

/// Emulates a program error that mixes up rows of columns.
void rotate_rows(const mr::padded_view<std::uint32_t, 2>& words) {
  const auto values = words.values.span();
  std::rotate(values.begin(), values.end() - static_cast<std::ptrdiff_t>(words.values.shape[1]), values.end());
  std::rotate(words.lengths.begin(), words.lengths.end() - 1, words.lengths.end());
}

void train(command_line& args) {
  const settings s = read_settings(args);
  const pair_shards data = make_pair_shards(s.work);
  const std::string last = s.work + "/last.bin", best = s.work + "/best.bin";
  pair_model model({.side = side, .words = pair_vocabulary.size(), .answers = pair_answers, .seed = s.seed});
  const auto from = s.resume ? checkpoint_note::parse(model.load(last)) : checkpoint_note{};
  double best_accuracy = from.best;
  const std::uint64_t first_epoch = s.resume ? mr::parse_position(from.position).epoch : 0;
  if (first_epoch >= s.epochs) args.refuse("the checkpoint has all epochs: raise --epochs to continue");

  // One function for both sets, so that only one type of flow is compiled.
  const auto pairs = [&](const std::string& pattern, std::size_t window, const mr::batch_options& rows) {
    return mr::shards(pattern, {.seed = s.seed}) | mr::shuffle({.window = window}) | mr::map(prepare) |
           mr::batch<&example::pixels, &example::words, &example::answer>(rows);
  };
  mr::session training{pairs(data.train, 640, {.size = s.batch / s.accumulate}),
                       {.epochs = s.epochs, .threads = s.threads, .resume = from.position}};
  mr::session validation{pairs(data.validation, 1, {.size = 96, .drop_last = false}),
                         {.epochs = s.epochs, .threads = s.threads, .notice = mr::quiet}};

  mr::log out(mr::status_line{}, mr::json_lines(s.work + "/train.jsonl"));
  mr::metrics metrics({.every = 20});
  auto loss = metrics.mean("loss"), padding = metrics.mean("padding_share");
  auto accuracy = metrics.accuracy("accuracy");
  answers_outcome held_out;

  for (std::uint64_t epoch = first_epoch; epoch < s.epochs; ++epoch) {
    std::string position;   // after the last update; empty between two updates
    for (auto& b : training.epoch(epoch)) {
      const auto [pixels, words, answers] = b.columns();
      if (s.rotate_queries) rotate_rows(words);
      const answers_outcome outcome = model.backward(pixels, words, answers);
      loss.add(outcome.mean_loss(), static_cast<double>(outcome.samples));
      accuracy.add(model.logits(), answers);
      const auto count = static_cast<double>(
          std::accumulate(words.lengths.begin(), words.lengths.end(), std::int64_t{0}));
      padding.add(1 - count / static_cast<double>(words.values.size()), static_cast<double>(words.values.size()));
      metrics.count("samples", b.size());
      position.clear();
      if ((b.step() + 1) % s.accumulate != 0) continue;   // accumulates the gradients of a batch

      model.update(4e-3);
      metrics.maybe_log({.step = model.updates(), .epoch = epoch}, out);
      position = b.resume_text();
      const bool ends_epoch = b.position().epoch > epoch;   // then the checkpoint is written after the validation
      if (!ends_epoch && model.updates() % s.save_every == 0)
        model.save(last, checkpoint_note{best_accuracy, position}.text());
      if (model.updates() == s.stop_after) return;
    }
    metrics.finish(out);

    held_out = {};
    for (auto& b : validation.epoch(epoch - first_epoch)) {
      const auto [pixels, words, answers] = b.columns();
      held_out.add(model.evaluate(pixels, words, answers));
    }
    out.push({.step = model.updates(),
              .epoch = epoch,
              .values = {{"validation_loss", held_out.mean_loss()},
                         {"validation_accuracy", held_out.accuracy(), mr::quantity_unit::share}}});
    if (held_out.accuracy() > best_accuracy) {
      best_accuracy = held_out.accuracy();
      model.save(best, checkpoint_note{best_accuracy, position}.text());
    }
    if (!position.empty()) model.save(last, checkpoint_note{best_accuracy, position}.text());
    metrics.restart();   // excludes the validation from the rates of the next row
  }
  out.close();
  std::printf("summary: accuracy=%.3f best=%.3f updates=%llu\n", held_out.accuracy(), best_accuracy,
              static_cast<unsigned long long>(model.updates()));
}

}   // namespace

int main(int argc, char** argv) {
  return run_program({argc, argv,
                      "usage: train_pairs [--work FOLDER] [--epochs N] [--seed N] [--batch N] [--accumulate N] "
                      "[--save-every UPDATES] [--resume] [--stop-after UPDATES] [--threads N] [--rotate-queries]"},
                     train);
}
