// Mutations of an input of knobs and a text of words: libFuzzer's own, and others that change complete words.
//
//   mr::rng d({.seed = seed});
//   slow::text_mutator(d, LLVMFuzzerMutate, {"shape", "True", "0"}).change(data, size, max_size, knobs);
#pragma once

#include <millrace/base/random.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slow {

namespace mr = millrace;

class text_mutator {
 public:
  using any_mutation = std::size_t (*)(std::uint8_t* data, std::size_t size, std::size_t max_size);

  text_mutator(mr::rng& d, any_mutation any, std::initializer_list<std::string_view> words)
      : d_(d), any_(any), words_(words) {}

  /// Starts again with a valid input, which mutations of a damaged one rarely reach. Returns the new size.
  static std::size_t restart_with(std::string_view text, std::uint8_t* data, std::size_t max_size) {
    const std::size_t size = std::min(text.size(), max_size);
    std::copy_n(text.data(), size, data);
    return size;
  }

  /// Usually does not change the first `knobs` bytes. Returns the new size.
  std::size_t change(std::uint8_t* data, std::size_t size, std::size_t max_size, std::size_t knobs) {
    if (size <= knobs || d_.chance(0.3)) return any_(data, size, max_size);
    if (knobs > 0 && d_.chance(0.1)) data[d_.below(knobs)] = static_cast<std::uint8_t>(d_.below(256));
    std::string text(reinterpret_cast<const char*>(data) + knobs, size - knobs);
    for (std::uint64_t times = d_.below(3) + 1; times > 0; --times) change_word(text);
    const std::size_t length = std::min(text.size(), max_size - knobs);
    std::copy_n(text.data(), length, data + knobs);
    return knobs + length;
  }

 private:
  using place = std::pair<std::size_t, std::size_t>;

  static bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  static std::vector<place> words_of(const std::string& text) {
    std::vector<place> words;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + 1;
      while (of_word(text[at]) && end < text.size() && of_word(text[end])) ++end;
      words.emplace_back(at, end - at);
      at = end;
    }
    return words;
  }

  std::string any_word() {
    static constexpr std::uint64_t edges[] = {0, 1, 2, 127, 255, 65535, 0xffffffff, ~std::uint64_t{0}};
    if (words_.size() > 0 && d_.chance(0.6)) return std::string(words_[d_.below(words_.size())]);
    return std::to_string(d_.chance(0.5) ? edges[d_.below(8)] + d_.below(2) : d_.below(20));
  }

  void change_word(std::string& text) {
    const auto words = words_of(text);
    if (words.empty()) {
      text = any_word();
      return;
    }
    const place at = words[d_.below(words.size())], other = words[d_.below(words.size())];
    const std::string copy = text.substr(other.first, other.second);
    switch (d_.below(6)) {
      case 0: text.erase(at.first, at.second); return;
      case 1: text.insert(at.first, any_word()); return;
      case 2: text.insert(at.first, copy); return;
      case 3: text.replace(at.first, at.second, copy); return;
      case 4: {   // another digit
        char& c = text[at.first + d_.below(at.second)];
        c = static_cast<char>(std::isdigit(static_cast<unsigned char>(c)) != 0 ? '0' + d_.below(10) : d_.below(256));
        return;
      }
      default: text.replace(at.first, at.second, any_word()); return;
    }
  }

  mr::rng& d_;
  any_mutation any_;
  std::vector<std::string_view> words_;
};

}  // namespace slow
