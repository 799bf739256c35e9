// A user's program that reads text with an installed Millrace, without libjpeg: lines to rows of characters.
#include <millrace/text.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace mr = millrace;

std::vector<std::uint32_t> characters_of(std::string_view text) { return {text.begin(), text.end()}; }

int main(int, char** argv) {
  const std::string name = std::string(argv[0]) + ".txt";
  std::FILE* file = std::fopen(name.c_str(), "w");
  if (!file) return 1;
  std::fputs("to be\r\nor not\n", file);
  std::fclose(file);
  auto flow = mr::lines(std::vector{name}) | mr::map(characters_of) | mr::pack({.length = 4, .separator = '|'}) |
              mr::batch<&mr::packed::ids>({.size = 3, .drop_last = false});
  std::string text;
  mr::session run{std::move(flow), {.notice = mr::quiet}};
  for (auto& b : run)
    for (const auto id : b.get<&mr::packed::ids>().host()) text += static_cast<char>(id);
  std::printf("millrace %d.%d: %s\n", MILLRACE_VERSION_MAJOR, MILLRACE_VERSION_MINOR, text.c_str());
  return text == "to be|or not||||" ? 0 : 1;
}
