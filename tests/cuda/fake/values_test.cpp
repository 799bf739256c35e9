#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using named_values = std::vector<std::pair<std::string, std::string>>;
named_values values_of_stand_in();
named_values values_of_toolkit();

TEST_CASE("names, numbers and signatures of the fake runtime equal the toolkit's") {
  const named_values ours = values_of_stand_in(), theirs = values_of_toolkit();
  REQUIRE(ours.size() == theirs.size());
  REQUIRE(ours.size() > 100);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(ours[i].first);
    CHECK(ours[i].second == theirs[i].second);
  }
}

TEST_CASE("the list is complete") {
  std::ifstream file(FAKE_CUDA_HEADER);
  std::stringstream text;
  text << file.rdbuf();
  REQUIRE(text.str().size() > 1000);
  std::vector<std::string> listed;
  for (const auto& [name, value] : values_of_stand_in()) listed.push_back(name);
  const auto is_listed = [&](const std::string& name) {
    for (const std::string& l : listed) {
      if (l == name) return true;
    }
    return false;
  };
  std::size_t count = 0;
  std::string line;
  while (std::getline(text, line)) {
    // "  cudaName = 1," of an enumeration; "#define cudaName 1"; "cudaError_t cudaName(" of a function.
    std::string name;
    if (line.starts_with("  cuda") && line.find(" = ") != line.npos) name = line.substr(2, line.find(" = ") - 2);
    if (line.starts_with("#define cuda")) name = line.substr(8, line.find(' ', 8) - 8);
    if (line.starts_with("cudaError_t cuda")) name = line.substr(12, line.find('(') - 12);
    if (name.empty()) continue;
    CAPTURE(name);
    CHECK(is_listed(name));
    ++count;
  }
  CHECK(count > 100);
}
