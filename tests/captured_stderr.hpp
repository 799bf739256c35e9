// The text that is printed to stderr meanwhile, including that of the C library and of system calls.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

/// The first 4,000 bytes of it.
template <class Act>
std::string captured_stderr(const Act& act) {
  std::FILE* const file = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  act();
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::string text(4'000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}
