// Runs a program and calls a function with each line of its output.
//
//   bench::for_each_line_of("python3 peers.py", [](const std::string& line) { ... });
//
// A program that cannot be started has no lines. Its errors go to stderr. Threads: one.
#pragma once

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace bench {

/// Calls `act` with each line, without its end.
template <class Act>
void for_each_line_of(const std::string& command, const Act& act) {
  std::fflush(stdout);
  const auto close = [](std::FILE* f) { pclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> out(popen(command.c_str(), "r"), close);
  std::array<char, 1'024> part;
  std::string line;
  while (out && std::fgets(part.data(), part.size(), out.get())) {
    line += part.data();
    if (line.back() != '\n') continue;
    line.pop_back();
    act(line);
    line.clear();
  }
  if (!line.empty()) act(line);
}

}   // namespace bench
