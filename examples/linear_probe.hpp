// The accuracy of a linear classifier on given features, which is the usual measure for self-supervised networks.
//
//   labelled_features training, test;                            // training.add(features, labels) for each batch
//   double accuracy = linear_probe(training, test, 64);          // trained on the first, measured on the second
//
// Ridge regression of each class's indicator on standardized features, in closed form.
// Errors: setup_error if one of the sets is empty. Threads: pure.
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

inline double linear_probe(labelled_features training, labelled_features test, std::size_t width) {
  if (training.labels.empty() || test.labels.empty())
    throw millrace::setup_error("a linear probe has an empty set", "Pass two sets that are not empty");
  const std::size_t classes = 1 + std::max(*std::max_element(training.labels.begin(), training.labels.end()),
                                           *std::max_element(test.labels.begin(), test.labels.end()));
  const auto samples = static_cast<double>(training.labels.size());
  for (std::size_t f = 0; f < width; ++f) {
    double mean = 0, squares = 0;
    for (std::size_t i = f; i < training.features.size(); i += width) mean += training.features[i] / samples;
    for (std::size_t i = f; i < training.features.size(); i += width)
      squares += std::pow(training.features[i] - mean, 2);
    const double scale = 1 / (std::sqrt(squares / samples) + 1e-9);
    for (auto* all : {&training.features, &test.features})
      for (std::size_t i = f; i < all->size(); i += width) (*all)[i] = ((*all)[i] - mean) * scale;
  }
  // Rows of the normal equations: width + 1 sums of products, then the targets of the classes. The last row is the
  // bias.
  const std::size_t unknowns = width + 1, columns = unknowns + classes;
  std::vector<double> equations(unknowns * columns, 0);
  for (std::size_t s = 0; s < training.labels.size(); ++s) {
    const double* const x = &training.features[s * width];
    for (std::size_t i = 0; i < unknowns; ++i) {
      const double xi = i < width ? x[i] : 1;
      for (std::size_t j = 0; j < unknowns; ++j) equations[i * columns + j] += xi * (j < width ? x[j] : 1);
      equations[i * columns + unknowns + training.labels[s]] += xi;
    }
  }
  for (std::size_t i = 0; i < unknowns; ++i) equations[i * columns + i] += 1e-3 * samples;
  for (std::size_t i = 0; i < unknowns; ++i)   // Gauss-Jordan; the ridge makes every pivot positive
    for (std::size_t j = 0; j < unknowns; ++j) {
      if (j == i) continue;
      const double factor = equations[j * columns + i] / equations[i * columns + i];
      for (std::size_t c = i; c < columns; ++c) equations[j * columns + c] -= factor * equations[i * columns + c];
    }
  std::size_t right = 0;
  for (std::size_t s = 0; s < test.labels.size(); ++s) {
    std::vector<double> score(classes, 0);
    for (std::size_t i = 0; i < unknowns; ++i)
      for (std::size_t c = 0; c < classes; ++c)
        score[c] += (i < width ? test.features[s * width + i] : 1) * equations[i * columns + unknowns + c] /
                    equations[i * columns + i];
    right += static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin()) == test.labels[s];
  }
  return static_cast<double>(right) / static_cast<double>(test.labels.size());
}
