// How well a linear classifier tells classes by given features: what self-supervised networks are judged by.
//
//   labelled_features known, asked;                            // known.add(features, labels) for each batch
//   double accuracy = linear_probe(known, asked, 64);          // learnt of the known, share of the asked it gets right
//
// Ridge regression of each class's indicator on standardized features, solved at once.
// Errors: setup_error where nothing is known or asked. Threads: pure.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

struct labelled_features {
  std::vector<double> features;
  std::vector<std::size_t> labels;

  void add(std::span<const float> more, std::span<const std::int32_t> of) {
    features.insert(features.end(), more.begin(), more.end());
    for (const std::int32_t label : of) labels.push_back(static_cast<std::size_t>(label));
  }
};

inline double linear_probe(labelled_features known, labelled_features asked, std::size_t width) {
  if (known.labels.empty() || asked.labels.empty())
    throw millrace::setup_error("a linear probe has no samples to learn or to be asked", "Give it whole data sets");
  const std::size_t classes = 1 + std::max(*std::max_element(known.labels.begin(), known.labels.end()),
                                           *std::max_element(asked.labels.begin(), asked.labels.end()));
  const auto samples = static_cast<double>(known.labels.size());
  for (std::size_t f = 0; f < width; ++f) {
    double mean = 0, squares = 0;
    for (std::size_t i = f; i < known.features.size(); i += width) mean += known.features[i] / samples;
    for (std::size_t i = f; i < known.features.size(); i += width) squares += std::pow(known.features[i] - mean, 2);
    const double scale = 1 / (std::sqrt(squares / samples) + 1e-9);
    for (auto* all : {&known.features, &asked.features})
      for (std::size_t i = f; i < all->size(); i += width) (*all)[i] = ((*all)[i] - mean) * scale;
  }
  // Rows of the normal equations: width + 1 sums of products, then what the classes shall be. The last one is the bias.
  const std::size_t unknowns = width + 1, columns = unknowns + classes;
  std::vector<double> m(unknowns * columns, 0);
  for (std::size_t s = 0; s < known.labels.size(); ++s) {
    const double* const x = &known.features[s * width];
    for (std::size_t i = 0; i < unknowns; ++i) {
      const double xi = i < width ? x[i] : 1;
      for (std::size_t j = 0; j < unknowns; ++j) m[i * columns + j] += xi * (j < width ? x[j] : 1);
      m[i * columns + unknowns + known.labels[s]] += xi;
    }
  }
  for (std::size_t i = 0; i < unknowns; ++i) m[i * columns + i] += 1e-3 * samples;
  for (std::size_t i = 0; i < unknowns; ++i)   // Gauss and Jordan; the ridge makes every pivot positive
    for (std::size_t j = 0; j < unknowns; ++j) {
      if (j == i) continue;
      const double factor = m[j * columns + i] / m[i * columns + i];
      for (std::size_t c = i; c < columns; ++c) m[j * columns + c] -= factor * m[i * columns + c];
    }
  std::size_t right = 0;
  for (std::size_t s = 0; s < asked.labels.size(); ++s) {
    std::vector<double> score(classes, 0);
    for (std::size_t i = 0; i < unknowns; ++i)
      for (std::size_t c = 0; c < classes; ++c)
        score[c] += (i < width ? asked.features[s * width + i] : 1) * m[i * columns + unknowns + c] /
                    m[i * columns + i];
    right += static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin()) == asked.labels[s];
  }
  return static_cast<double>(right) / static_cast<double>(asked.labels.size());
}
