// The option --restarts-per-row N|auto of programs that write JPEGs, and its options of the transcoder.
//
//   const restart_choice restarts = read_restarts(args);             // default: none
//   auto file = transcode::transcode_jpeg(bytes, restarts.coding());
//   std::string in_a_record = restarts.text();                       // "0", "8", "auto"
//
// auto selects the shortest interval of at least 64 pixels with which the coded data of an image grow by at most 2 %.
// With restarts, an image with the standard codes keeps them, because decoders contain their tables.
// Errors: setup_error for another word. Threads: a value.
#pragma once

#include "command_line.hpp"
#include "transcode/jpeg_transcoder.hpp"

#include <string>

struct restart_choice {
  unsigned per_row = 0;
  bool by_size = false;

  bool enabled() const { return by_size || per_row != 0; }
  std::string text() const { return by_size ? "auto" : std::to_string(per_row); }
  transcode::jpeg_transcode_options coding() const {
    constexpr double growth_limit = 0.02;
    return {
        .restarts_per_row = per_row, .restart_growth = by_size ? growth_limit : 0, .keep_standard_codes = enabled()};
  }
};

inline restart_choice read_restarts(command_line& args) {
  constexpr auto name = "--restarts-per-row";
  if (args.word(name, "auto")) return {.by_size = true};
  return {.per_row = args.number(name, 0U)};
}
