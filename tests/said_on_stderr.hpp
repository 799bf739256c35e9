// What is printed to stderr meanwhile, down to the C library and below.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

/// The first 4,000 bytes of it.
template <class Act>
std::string said_on_stderr(const Act& act) {
  std::FILE* const kept = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(kept), STDERR_FILENO);
  act();
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(kept);
  std::string text(4'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), kept));
  std::fclose(kept);
  return text;
}
