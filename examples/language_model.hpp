// A small language model in plain C++, which predicts the next token from the four before it (Bengio et al. 2003, "A
// Neural Probabilistic Language Model"): embeddings, one hidden layer, softmax; Adagrad.
//
//   language_model model({.vocabulary = 512});
//   double loss = model.learn(rows, length, 1, step);    // of one batch, in nats per token, before the step
//
// Threads: one. All random numbers follow from the seed.
#pragma once

#include <millrace/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

struct language_model_options {
  std::size_t vocabulary = 512, width = 16, hidden = 32;
  std::uint64_t seed = 1;
  float rate = 0.08F;
};

class language_model {
 public:
  static constexpr std::size_t context = 4;

  explicit language_model(const language_model_options& o)
      : options_(o),
        embedding_(o.vocabulary * o.width, 0.3F, o.seed),
        inner_(context * o.width * o.hidden, 0.15F, o.seed + 1),
        inner_bias_(o.hidden, 0, 0),
        outer_(o.hidden * o.vocabulary, 0.15F, o.seed + 2),
        outer_bias_(o.vocabulary, 0, 0),
        input_(context * o.width),
        input_slope_(context * o.width),
        hidden_(o.hidden),
        hidden_slope_(o.hidden),
        chance_(o.vocabulary) {}

  /// Learns each `every`-th token of rows of `length`, to emulate a device that is `every` times as fast. The
  /// selection changes with the step.
  double learn(std::span<const std::uint32_t> tokens, std::size_t length, std::size_t every, std::uint64_t step) {
    double loss = 0;
    std::size_t targets = 0;
    for (std::size_t row = 0; row + length <= tokens.size(); row += length)
      for (std::size_t at = context + step % every; at < length; at += every, ++targets)
        loss += learn_token(tokens.subspan(row + at - context, context), tokens[row + at]);
    for (parameters* p : {&embedding_, &inner_, &inner_bias_, &outer_, &outer_bias_})
      p->step(options_.rate, 1.0F / static_cast<float>(std::max<std::size_t>(1, targets)));
    return loss / static_cast<double>(std::max<std::size_t>(1, targets));
  }

 private:
  struct parameters {
    std::vector<float> value, slope, squares;

    parameters(std::size_t count, float spread, std::uint64_t seed)
        : value(count), slope(count), squares(count, 1e-6F) {
      millrace::rng random({.seed = seed, .epoch = 0, .sample = 0, .stage = 0});
      for (float& v : value) v = spread * static_cast<float>(2 * random.uniform() - 1);
    }
    void step(float rate, float scale) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const float g = slope[i] * scale;
        squares[i] += g * g;
        value[i] -= rate * g / std::sqrt(squares[i]);
        slope[i] = 0;
      }
    }
  };

  double learn_token(std::span<const std::uint32_t> before, std::uint32_t next) {
    const std::size_t width = options_.width, hidden = options_.hidden, vocabulary = options_.vocabulary;
    for (std::size_t c = 0; c < context; ++c)
      std::copy_n(&embedding_.value[before[c] % vocabulary * width], width, &input_[c * width]);
    hidden_ = inner_bias_.value;
    for (std::size_t i = 0; i < input_.size(); ++i)
      for (std::size_t h = 0; h < hidden; ++h) hidden_[h] += input_[i] * inner_.value[i * hidden + h];
    for (float& h : hidden_) h = std::tanh(h);

    chance_ = outer_bias_.value;
    for (std::size_t h = 0; h < hidden; ++h)
      for (std::size_t v = 0; v < vocabulary; ++v) chance_[v] += hidden_[h] * outer_.value[h * vocabulary + v];
    const float most = *std::max_element(chance_.begin(), chance_.end());
    float sum = 0;
    for (float& c : chance_) sum += c = std::exp(c - most);
    for (float& c : chance_) c /= sum;
    const double loss = -std::log(std::max(1e-30F, chance_[next % vocabulary]));

    chance_[next % vocabulary] -= 1;   // now the gradient
    for (std::size_t v = 0; v < vocabulary; ++v) outer_bias_.slope[v] += chance_[v];
    for (std::size_t h = 0; h < hidden; ++h) {
      float slope = 0;
      for (std::size_t v = 0; v < vocabulary; ++v) {
        slope += chance_[v] * outer_.value[h * vocabulary + v];
        outer_.slope[h * vocabulary + v] += hidden_[h] * chance_[v];
      }
      hidden_slope_[h] = slope * (1 - hidden_[h] * hidden_[h]);
      inner_bias_.slope[h] += hidden_slope_[h];
    }
    for (std::size_t i = 0; i < input_.size(); ++i) {
      float slope = 0;
      for (std::size_t h = 0; h < hidden; ++h) {
        slope += hidden_slope_[h] * inner_.value[i * hidden + h];
        inner_.slope[i * hidden + h] += input_[i] * hidden_slope_[h];
      }
      input_slope_[i] = slope;
    }
    for (std::size_t c = 0; c < context; ++c)
      for (std::size_t w = 0; w < width; ++w)
        embedding_.slope[before[c] % vocabulary * width + w] += input_slope_[c * width + w];
    return loss;
  }

  language_model_options options_;
  parameters embedding_, inner_, inner_bias_, outer_, outer_bias_;
  std::vector<float> input_, input_slope_, hidden_, hidden_slope_, chance_;
};
