// The counters of jpeg_pair_fuzz.cpp, which it prints at its end.
#pragma once

#include <cstdint>
#include <cstdio>

namespace slow {

/// Numbers of files on each path.
struct pair_statistics {
  std::uint64_t files = 0, decoded = 0, progressive = 0, refused_unwarned = 0, pictures = 0, errors = 0, accepted = 0;
  std::uint64_t by_entries = 0, by_wrong_entries = 0, by_markers = 0;

  void print() const {
    std::printf("%llu files: the built-in decoder decoded %llu, %llu of them progressive, and left %llu to libjpeg "
                "without a warning; %llu images, %llu errors, %llu accepted though damaged, "
                "%llu by entries, %llu by wrong ones, %llu by restart markers\n",
                static_cast<unsigned long long>(files), static_cast<unsigned long long>(decoded),
                static_cast<unsigned long long>(progressive), static_cast<unsigned long long>(refused_unwarned),
                static_cast<unsigned long long>(pictures), static_cast<unsigned long long>(errors),
                static_cast<unsigned long long>(accepted), static_cast<unsigned long long>(by_entries),
                static_cast<unsigned long long>(by_wrong_entries), static_cast<unsigned long long>(by_markers));
  }
};

inline pair_statistics& counters() {
  static pair_statistics s;
  return s;
}

}  // namespace slow
