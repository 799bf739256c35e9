// The note of a checkpoint, next to its weights: the best accuracy so far, and the position in the data.
//
//   model.save("last.bin", checkpoint_note{best, b.resume_text()}.text());
//   const auto from = checkpoint_note::parse(model.load("last.bin"));      // .position is for session_options::resume
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

struct checkpoint_note {
  double best = -1;
  std::string position{};

  std::string text() const {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g\n", best);
    return digits + position;
  }
  static checkpoint_note parse(const std::string& text) {
    return {std::strtod(text.c_str(), nullptr), text.substr(text.find('\n') + 1)};
  }
};
