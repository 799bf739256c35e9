// Times of Pillow and torchvision, measured by bench/peers/pictures.py on the benchmark's own images.
//
//   bench::picture_files files;
//   files.add("rgb", png);                                    // a file of the folder rgb
//   const bench::peer_times theirs = bench::measure_peers(run, files, 5);
//   theirs.us.at("rgb Pillow");                               // missing if it is not installed, which is printed
//
// The interpreter is that of MILLRACE_BENCH_PYTHON, else python3.
#pragma once

#include "../harness.hpp"
#include "lines_of_program.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>

namespace bench {

/// Files in a folder that is removed at the end.
class picture_files {
 public:
  picture_files() : folder_(std::filesystem::path(data_folder()) / "peers") { remove(); }
  ~picture_files() { remove(); }
  picture_files(const picture_files&) = delete;
  picture_files& operator=(const picture_files&) = delete;

  void add(const std::string& kind, std::span<const std::byte> file) {
    std::filesystem::create_directories(folder_ / kind);
    char name[32];
    std::snprintf(name, sizeof name, "%05zu", count_++);
    std::ofstream(folder_ / kind / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  }
  std::string folder() const { return folder_.string(); }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path folder_;
  std::size_t count_ = 0;
};

struct peer_times {
  std::map<std::string, double> us{};   // by name
};

/// Runs the script, and prints the libraries that it skips.
inline peer_times measure_peers(harness& run, const picture_files& files, int rounds) {
  const char* interpreter = std::getenv("MILLRACE_BENCH_PYTHON");
  const std::string python = interpreter && *interpreter ? interpreter : "python3";
  const std::string command = python + " " MILLRACE_BENCH_PEERS "/pictures.py '" + files.folder() + "' " +
                              std::to_string(rounds);
  peer_times times;
  for_each_line_of(command, [&](const std::string& text) {
    const std::size_t tab = text.find('\t');
    if (tab == std::string::npos) return;
    const std::string name = text.substr(0, tab), value = text.substr(tab + 1);
    if (name == "skipped" || name == "version") run.finding("peer " + name, value);
    else times.us[name] = std::strtod(value.c_str(), nullptr);
  });
  for (const auto& [name, us] : times.us) run.result(name, us, "us");
  return times;
}

}   // namespace bench
