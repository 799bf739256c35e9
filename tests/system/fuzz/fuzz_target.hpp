// Shared by the targets NAME_fuzz.cpp of the parsers. A target defines
//
//   void slow::write_seeds(const slow::seed_folder& seeds);       // valid inputs, by our own writers
//   void slow::check(std::span<const std::byte> input, slow::draw choose);
//
// and calls slow::fail() if our parser and a slow second one disagree. `choose` depends on all bytes of the input, so
// that libFuzzer's preference for new code does not influence it. With --all it always returns true.
//
//   NAME_fuzz --seeds=FOLDER FOLDER      # writes seeds first
//   NAME_fuzz --all crash-...            # one input again, with every check
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/base/random.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/byte_source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace slow {

namespace mr = millrace;

/// Aborts the run: the library and its reference disagree.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "FOUND: %s\n", what.c_str());
  std::abort();
}

inline void expect(bool condition, const char* what) {
  if (!condition) fail(what);
}

/// Returns the parts of a text between the characters `at`; one part if there is no such character.
inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

/// Numbers of inputs that the parser accepted and refused, printed at the end for fuzz.py.
struct statistics {
  std::uint64_t inputs = 0, accepted = 0, refused = 0;

  void count(bool is_accepted) noexcept { ++(is_accepted ? accepted : refused); }
  void print() const {
    std::printf("%llu inputs: %llu accepted, %llu refused\n", static_cast<unsigned long long>(inputs),
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(refused));
  }
};

inline statistics& counters() {
  static statistics s;
  return s;
}

/// Random choices that depend on the bytes of the input.
class draw {
 public:
  explicit draw(std::span<const std::byte> input)
      : rng_({.seed = std::hash<std::string_view>()({reinterpret_cast<const char*>(input.data()), input.size()})}) {}

  bool one_in(std::uint64_t count) { return rng_.below(count) == 0 || all(); }
  std::uint64_t below(std::uint64_t count) { return rng_.below(count); }

  static bool& all() {
    static bool always = false;
    return always;
  }

 private:
  mr::rng rng_;
};

/// The folder of the initial inputs.
class seed_folder {
 public:
  explicit seed_folder(std::string_view path) : path_(path) { std::filesystem::create_directories(path_); }

  void add(std::span<const std::byte> bytes) const {
    std::ofstream(path_ / std::to_string(count_++), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void add(std::string_view text) const { add(mr::detail::bytes_of(text)); }

 private:
  std::filesystem::path path_;
  mutable int count_ = 0;
};

/// An input in memory, in pieces of at most `piece` bytes.
class span_source final : public mr::byte_source {
 public:
  explicit span_source(std::span<const std::byte> bytes, std::size_t piece = ~std::size_t{0}) noexcept
      : bytes_(bytes), piece_(piece) {}

  std::string_view name() const noexcept override { return "input"; }
  std::size_t read_at(std::uint64_t offset_bytes, std::span<std::byte> buffer) override {
    if (offset_bytes >= bytes_.size()) return 0;
    const auto rest = bytes_.subspan(static_cast<std::size_t>(offset_bytes));
    const std::size_t count = std::min({rest.size(), buffer.size(), piece_});
    std::memcpy(buffer.data(), rest.data(), count);
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t piece_;
};

/// Memory whose last byte precedes a page without access.
class guarded_bytes {
 public:
  guarded_bytes() {
    void* const pages = mmap(nullptr, capacity + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + capacity, page, PROT_NONE) != 0) std::abort();
    end_ = static_cast<std::byte*>(pages) + capacity;
  }
  std::span<const std::byte> of(std::span<const std::byte> bytes) const {
    if (bytes.size() > capacity) std::abort();
    std::memcpy(end_ - bytes.size(), bytes.data(), bytes.size());
    return {end_ - bytes.size(), bytes.size()};
  }

 private:
  static constexpr std::size_t page = 4096, capacity = 4 * page;
  std::byte* end_ = nullptr;
};

inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether the first bytes indicate compression. libarchive's decompressors are not tested here.
inline bool looks_compressed(std::string_view text) noexcept {
  using namespace std::string_view_literals;
  for (const auto mark : {"\x1f\x8b"sv, "BZh"sv, "\xfd" "7zXZ"sv, "\x28\xb5\x2f\xfd"sv, "\x04\x22\x4d\x18"sv,
                          "\x02\x21\x4c\x18"sv})
    if (text.starts_with(mark)) return true;
  return text.size() > 3 && text.substr(1, 3) == "\x2a\x4d\x18"sv;   // a skippable zstd frame
}

/// Removes and returns the first byte, which selects how the rest is tested; 0 if the input is empty.
inline unsigned take_knob(std::span<const std::byte>& input) noexcept {
  if (input.empty()) return 0;
  const auto knob = std::to_integer<unsigned>(input[0]);
  input = input.subspan(1);
  return knob;
}

void write_seeds(const seed_folder& seeds);
void check(std::span<const std::byte> input, draw choose);

}  // namespace slow

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string_view option = "--seeds=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view a = (*arguments)[i];
    if (a.starts_with(option)) slow::write_seeds(slow::seed_folder(a.substr(option.size())));
    if (a == "--all") slow::draw::all() = true;
  }
  std::atexit([] { slow::counters().print(); });
  return 0;
}

/// libFuzzer passes a copy of exactly the input's size, so that AddressSanitizer detects reads past its end. Without
/// AddressSanitizer, the input is copied to the end of a page that precedes a page without access.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto input = std::as_bytes(std::span(data, size));
#ifdef MILLRACE_FUZZ_FAST
  static slow::guarded_bytes copy;
  input = copy.of(input);
#endif
  ++slow::counters().inputs;
  slow::check(input, slow::draw(input));
  return 0;
}
