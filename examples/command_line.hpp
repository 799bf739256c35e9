// The arguments of the example programs: --name value, --flag, and the rest.
//
//   int main(int argc, char** argv) { return run_program({argc, argv, "usage: ..."}, program); }
//
//   void program(command_line& args) {
//     const auto epochs = args.number("--epochs", 12);      // in any order; each call removes its argument
//     const auto folder = args.text("--work", "data");
//     const bool rotate = args.flag("--rotate-labels");
//     const auto patterns = args.rest();                    // other arguments; setup_error for an unknown option
//   }
//
// --help prints the usage. run_program prints the exceptions of the program. It returns the exit status: 1 after an
// exception, otherwise the result of the program, or 0.
#pragma once

#include <millrace/base/error.hpp>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

class command_line {
 public:
  command_line(int argc, char** argv, std::string usage) : words_(argv + 1, argv + argc), usage_(std::move(usage)) {}

  const std::string& usage() const { return usage_; }

  bool flag(std::string_view name) {
    const auto it = std::find(words_.begin(), words_.end(), name);
    if (it == words_.end()) return false;
    words_.erase(it);
    return true;
  }

  std::string text(std::string_view name, std::string otherwise) {
    const auto it = std::find(words_.begin(), words_.end(), name);
    if (it == words_.end()) return otherwise;
    if (it + 1 == words_.end()) refuse(std::string(name) + " has no value");
    std::string value = *(it + 1);
    words_.erase(it, it + 2);
    return value;
  }

  /// Removes the option from the list if this is its value.
  bool word(std::string_view name, std::string_view value) {
    const auto it = std::find(words_.begin(), words_.end(), name);
    if (it == words_.end() || it + 1 == words_.end() || *(it + 1) != value) return false;
    words_.erase(it, it + 2);
    return true;
  }

  template <std::integral Number>
  Number number(std::string_view name, Number otherwise) {
    const std::string value = text(name, std::to_string(otherwise));
    Number number = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (problem != std::errc() || end != value.data() + value.size())
      refuse(std::string(name) + " is '" + millrace::printable(value) + "', expected an integer in its range");
    return number;
  }

  template <std::integral Number>
  std::optional<Number> number(std::string_view name, std::optional<Number> otherwise) {
    if (std::find(words_.begin(), words_.end(), name) == words_.end()) return otherwise;
    return number(name, otherwise.value_or(0));
  }

  std::vector<std::string> rest() {
    for (const auto& word : words_)
      if (word.starts_with("-")) refuse("unknown argument '" + millrace::printable(word) + "'");
    return std::exchange(words_, {});
  }

  [[noreturn]] void refuse(const std::string& problem) const { throw millrace::setup_error(problem, usage_); }

 private:
  std::vector<std::string> words_;
  std::string usage_;
};

template <class Program>
int run_program(command_line args, Program program) {
  try {
    if (args.flag("--help") || args.flag("-h")) std::printf("%s\n", args.usage().c_str());
    else if constexpr (std::is_void_v<decltype(program(args))>) program(args);
    else return program(args);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}
