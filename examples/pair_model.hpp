// A model of images and questions in plain C++: a dense layer for the image, the mean of the word embeddings, their
// product, and a dense layer for the answer (after Antol et al., "VQA: Visual Question Answering", ICCV 2015); Adam
// (Kingma and Ba, ICLR 2015).
//
//   pair_model model({.side = 12, .words = 27, .answers = 8});
//   auto outcome = model.backward(pixels, words, answers);   // [B, side, side, 3] u8, a ragged column of u32, [B] i32
//   model.update(4e-3);                                      // with the mean over all backward() since the last update
//   model.save("last.bin", note);   std::string note = model.load("last.bin");
//
// Padding is ignored: a row of words ends at its length. The same calls compute the same bits.
// Errors: setup_error for wrong shapes and ids, io_error and data_error from save and load.
// Threads: one.
#pragma once

#include "adam.hpp"

#include <millrace/base/random.hpp>
#include <millrace/item/tensor/tensor_view.hpp>
#include <millrace/item/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct pair_model_options {
  std::size_t side = 12, words = 1, answers = 2, width = 32;
  std::uint64_t seed = 1;
};

/// The result of a pass over a batch.
struct answers_outcome {
  double loss_sum = 0;
  std::size_t correct = 0, samples = 0;

  double mean_loss() const { return loss_sum / static_cast<double>(samples); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(samples); }
  void add(const answers_outcome& o) {
    loss_sum += o.loss_sum;
    correct += o.correct;
    samples += o.samples;
  }
};

class pair_model {
 public:
  using pixels_view = millrace::tensor_view<std::uint8_t, 4>;
  using words_view = millrace::padded_view<std::uint32_t, 2>;
  using answers_view = millrace::tensor_view<std::int32_t, 1>;

  explicit pair_model(const pair_model_options& o)
      : options_(o),
        pixels_(o.side * o.side * 3),
        embedding_at_(pixels_ * o.width),
        bias_at_(embedding_at_ + o.words * o.width),
        outer_at_(bias_at_ + o.width),
        outer_bias_at_(outer_at_ + o.width * o.answers),
        learned_(outer_bias_at_ + o.answers) {
    millrace::rng random({.seed = o.seed});
    const auto fill = [&](std::size_t from, std::size_t to, double reach) {
      for (std::size_t i = from; i < to; ++i) learned_.weights[i] = static_cast<float>(random.uniform(-reach, reach));
    };
    fill(0, embedding_at_, 1.7 / std::sqrt(static_cast<double>(pixels_)));
    fill(embedding_at_, bias_at_, 1);
    fill(outer_at_, outer_bias_at_, 1.7 / std::sqrt(static_cast<double>(o.width)));
  }

  answers_outcome backward(pixels_view pixels, const words_view& words, answers_view answers) {
    return run(pixels, words, answers, true);
  }
  answers_outcome evaluate(pixels_view pixels, const words_view& words, answers_view answers) {
    return run(pixels, words, answers, false);
  }
  /// [B, answers] of the last call; valid until the next call.
  millrace::tensor_view<const float, 2> logits() const {
    return {.data = logits_.data(), .shape = {logits_.size() / options_.answers, options_.answers}, .name = "logits"};
  }

  void update(double rate) { learned_.update({.rate = rate}); }
  std::uint64_t updates() const { return learned_.updates(); }

  /// Weights and optimizer, after an update. load() restores the exact state, and returns the note.
  void save(const std::string& path, std::string_view note) const { learned_.save(path, file_head(), note); }
  std::string load(const std::string& path) { return learned_.load(path, file_head()); }

 private:
  answers_outcome run(pixels_view pixels, const words_view& words, answers_view answers, bool learn) {
    const std::size_t rows = answers.shape[0];
    const std::array<std::size_t, 4> expected{rows, options_.side, options_.side, 3};
    if (pixels.shape != expected || words.lengths.shape[0] != rows)
      throw millrace::setup_error("the model got pixels " + millrace::to_string(pixels.shape) + " and words " +
                                      millrace::to_string(words.values.shape) + ", expected pixels " +
                                      millrace::to_string(expected),
                                  "Resize images to the side of the model, and pass columns of one batch");
    logits_.assign(rows * options_.answers, 0);
    answers_outcome outcome;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::span<const std::uint32_t> query = words[i];   // without its padding
      const auto answer = static_cast<std::size_t>(answers[i]);
      if (answer >= options_.answers ||
          std::any_of(query.begin(), query.end(), [&](std::uint32_t w) { return w >= options_.words; }))
        throw millrace::setup_error("an answer or a word has an unknown id",
                                    "Create the model for the vocabulary of the data");
      run_row(pixels[i].span(), query, {i, answer}, learn, outcome);
    }
    if (learn) learned_.samples += rows;
    return outcome;
  }

  struct target {
    std::size_t row, answer;
  };
  void run_row(std::span<const std::uint8_t> pixels, std::span<const std::uint32_t> query, target at, bool learn,
               answers_outcome& outcome) {
    const std::size_t width = options_.width, count = options_.answers;
    std::vector<float> input(pixels_), picture(width), text(width), error(count);
    for (std::size_t p = 0; p < pixels_; ++p) input[p] = static_cast<float>(pixels[p]) / 128 - 0.5F;
    std::copy_n(&learned_.weights[bias_at_], width, picture.begin());
    for (std::size_t p = 0; p < pixels_; ++p)
      for (std::size_t h = 0; h < width; ++h) picture[h] += input[p] * learned_.weights[p * width + h];
    for (float& h : picture) h = std::tanh(h);
    const float share = query.empty() ? 0 : 1 / static_cast<float>(query.size());
    for (const std::uint32_t w : query)
      for (std::size_t h = 0; h < width; ++h) text[h] += share * learned_.weights[embedding_at_ + w * width + h];

    float* const logits = &logits_[at.row * count];
    std::copy_n(&learned_.weights[outer_bias_at_], count, logits);
    for (std::size_t h = 0; h < width; ++h)
      for (std::size_t a = 0; a < count; ++a)
        logits[a] += picture[h] * text[h] * learned_.weights[outer_at_ + h * count + a];
    const float highest = *std::max_element(logits, logits + count);
    float sum = 0;
    for (std::size_t a = 0; a < count; ++a) sum += error[a] = std::exp(logits[a] - highest);
    for (float& e : error) e /= sum;
    outcome.loss_sum += static_cast<double>(std::log(sum) - (logits[at.answer] - highest));
    outcome.correct += static_cast<std::size_t>(std::max_element(logits, logits + count) - logits) == at.answer;
    ++outcome.samples;
    if (!learn) return;

    error[at.answer] -= 1;
    for (std::size_t a = 0; a < count; ++a) learned_.gradient[outer_bias_at_ + a] += error[a];
    for (std::size_t h = 0; h < width; ++h) {
      float slope = 0;
      for (std::size_t a = 0; a < count; ++a) {
        learned_.gradient[outer_at_ + h * count + a] += picture[h] * text[h] * error[a];
        slope += learned_.weights[outer_at_ + h * count + a] * error[a];
      }
      for (const std::uint32_t w : query)
        learned_.gradient[embedding_at_ + w * width + h] += slope * picture[h] * share;
      picture[h] = slope * text[h] * (1 - picture[h] * picture[h]);   // now its gradient
      learned_.gradient[bias_at_ + h] += picture[h];
    }
    for (std::size_t p = 0; p < pixels_; ++p)
      for (std::size_t h = 0; h < width; ++h) learned_.gradient[p * width + h] += input[p] * picture[h];
  }

  network_file::head file_head() const {
    return {.mark = 0x316c65646f6d7271U, .side = options_.side, .classes = options_.answers};
  }

  pair_model_options options_;
  std::size_t pixels_, embedding_at_, bias_at_, outer_at_, outer_bias_at_;
  adam<float> learned_;
  std::vector<float> logits_;
};
