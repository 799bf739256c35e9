// Photographs for tests: the JPEG files of a folder, or a few generated ones, because the repository has none.
#pragma once

#include "slow_planes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace slow {

inline std::vector<std::byte> bytes_in_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// Calls use(name, bytes) for each JPEG file under MILLRACE_TEST_PHOTOS, at any depth, in the order of their names.
template <class Use>
void for_each_photograph(const Use& use) {
  const char* folder = std::getenv("MILLRACE_TEST_PHOTOS");
  if (!folder) {
    for (const int factor : {1, 2})
      use("drawn " + std::to_string(factor), make_file(photo(375, 500, 3, 1), {.horizontal = factor}));
    return;
  }
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".jpg" || extension == ".jpeg")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) use(path, bytes_in_file(path));
}

}  // namespace slow
