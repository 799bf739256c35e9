// A program that kills.py kills, and that checks the files after a kill.
//
//   kills_subject list                             # a line KIND CLEANS for each kind
//   kills_subject data FOLDER                      # the shards that some kinds read
//   kills_subject write KIND FOLDER FIRST          # prints a line for each safe record
//   kills_subject check                            # reads lines KIND FOLDER SAFE; answers `records N` or the problem
#include "kills_subject.hpp"

#include <millrace/io/tar/write/shard_writer.hpp>

#include <cstdio>
#include <iostream>

#include <unistd.h>

namespace {

constexpr int data_shards = 8, data_samples = 100;

const kind& find(const std::string& name) {
  for (const auto all : {file_kinds(), line_kinds(), cache_kinds()})
    for (const kind& k : all)
      if (name == k.name) return k;
  wrong("there is no kind " + name);
}

void write_data(const std::string& folder) {
  millrace::shard_writer shards({.pattern = folder + "/d-%d.tar", .max_samples = data_samples});
  for (int i = 0; i < data_shards * data_samples; ++i)
    shards.write("k" + std::to_string(i), {{"n", std::to_string(i)}});
  shards.close();
}

void answer_checks() {
  std::string name, folder;
  for (std::uint64_t acknowledged = 0; std::cin >> name >> folder >> acknowledged;) {
    try {
      const std::uint64_t count = find(name).check(folder, acknowledged);
      if (count < acknowledged)
        wrong(std::to_string(count) + " of " + std::to_string(acknowledged) + " records are left");
      std::cout << "records " << count << std::endl;
    } catch (const std::exception& e) {
      std::string text = e.what();
      for (char& c : text)
        if (c == '\n') c = ' ';
      std::cout << text.substr(0, 500) << std::endl;
    }
  }
}

}  // namespace

void acknowledge(std::uint64_t record) {
  const std::string line = std::to_string(record) + "\n";
  if (::write(1, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(3);
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "list") {
      for (const auto all : {file_kinds(), line_kinds(), cache_kinds()})
        for (const kind& k : all) std::printf("%s %d\n", k.name, k.cleans);
    } else if (what == "data" && argc == 3) {
      write_data(argv[2]);
    } else if (what == "write" && argc == 5) {
      const kind& k = find(argv[2]);
      k.write({.folder = argv[3], .first = std::stoull(argv[4]), .count = k.count});
    } else if (what == "check") {
      answer_checks();
    } else {
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
