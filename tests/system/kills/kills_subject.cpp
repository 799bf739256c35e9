// A program that kills.py kills, and that checks the files after a kill.
//
//   kills_subject list                             # a line KIND CLEANS for each kind
//   kills_subject data FOLDER                      # the shards that some kinds read
//   kills_subject write KIND FOLDER FIRST          # prints a line for each safe record
//   kills_subject check                            # reads lines KIND FOLDER SAFE; answers `records N` or the problem
#include "kills_subject.hpp"

#include <millrace/base/json_objects.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/io/tar/write/shard_writer.hpp>
#include <millrace/metrics.hpp>
#include <millrace/run/quarantine_list.hpp>
#include <millrace/sources/keys_from.hpp>

#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <set>

namespace mr = millrace;

namespace {

/// A constant clock, so that records can be compared.
mr::instant noon() { return {.steady_ns = 1'000'000'000, .unix_ns = 1'700'000'000'000'000'000}; }

mr::log_options at_once() { return {.hold = {}, .now = noon}; }

void write_quarantine(const records& range) {
  mr::quarantine_list list(range.folder + "/q.jsonl");
  if (list.size() != range.first) wrong("the list's number of entries has changed");
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    if (!list.add({.shard = "s.tar", .key = long_text(n, 100'000), .reason = "killed"})) wrong("it is listed already");
    acknowledge(n);
  }
}

std::uint64_t check_quarantine(const std::string& folder, std::uint64_t acknowledged) {
  const std::string path = folder + "/q.jsonl", copy = folder + "/copied.jsonl";
  if (!std::filesystem::exists(path)) return 0;
  // Reads it like the next run, before that run's list repairs the file.
  const mr::key_list before = mr::keys_from(path);
  std::filesystem::copy_file(path, copy);
  const std::uint64_t listed = mr::quarantine_list(copy).size();
  const mr::key_list keys = mr::keys_from(copy);
  std::filesystem::remove(copy);
  if (keys.size() != listed || before.size() != listed) wrong("keys_from() and the list have different counts");
  if (listed > acknowledged + 1) wrong("more than one entry without acknowledgment");
  for (std::uint64_t n = 0; n < listed; ++n)
    if (!keys.contains(long_text(n, 100'000), "s.tar")) wrong("entry " + std::to_string(n) + " has other content");
  return listed;
}

mr::row row_of(std::uint64_t n) {
  const std::string text = long_text(n, 60'000);
  mr::row r{.step = n, .unix_ns = noon().unix_ns, .values = {{"loss", 1.0 / static_cast<double>(n + 1)}}};
  const auto bytes = mr::detail::bytes_of(text);
  r.images.push_back({.name = "picture", .file = {bytes.begin(), bytes.end()}, .width = 8, .height = 8});
  r.message = text;
  return r;
}

template <class Sink>
void write_log(const records& range, Sink sink) {
  mr::log out(at_once(), std::move(sink));
  for (std::uint64_t n = range.first; n < range.first + range.count; ++n) {
    if (!out.push(row_of(n)) || !out.flush()) wrong("the log refuses a row");
    acknowledge(n);
  }
}

void write_json(const records& range) { write_log(range, mr::json_lines(range.folder + "/run.jsonl")); }

std::uint64_t check_json(const std::string& folder, std::uint64_t acknowledged) {
  const std::string path = folder + "/run.jsonl", text = content_of(path);
  const std::string tail = text.substr(text.rfind('\n') + 1);   // npos + 1 is 0
  mr::block_pool pool;
  if (text.empty()) return 0;
  mr::line_reader lines(std::make_unique<mr::file_source>(path), pool, {});
  std::uint64_t n = 0;
  while (const auto line = lines.next()) {
    if (line->text() == tail && !mr::detail::is_complete_json_line(tail)) break;
    std::string messages;
    mr::detail::json_objects(line->text(), path).for_each([&](const auto& members) {
      for (const auto& m : members) messages += m.key == "message" ? m.text : "";
    });
    if (messages != long_text(n, 60'000)) wrong("line " + std::to_string(n) + " has other content");
    ++n;
  }
  if (n > acknowledged + 1) wrong("more than one line without acknowledgment");
  return n;
}

void write_tensorboard(const records& range) {
  write_log(range, mr::tensorboard({.folder = range.folder, .now = noon}));
}

/// Reads every file as TensorBoard does: record by record, up to the first truncated one.
std::uint64_t check_tensorboard(const std::string& folder, std::uint64_t) {
  std::set<std::uint64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = content_of(entry.path());
    for (std::size_t begin = 0; begin < text.size();) {
      std::uint64_t length = 0;
      std::memcpy(&length, text.data() + begin, std::min<std::size_t>(8, text.size() - begin));
      if (text.size() - begin < 12 || text.size() - begin < length + 16) break;
      const std::string record = text.substr(begin, length + 16), payload = record.substr(12, length);
      if (record != mr::detail::tfrecord(payload)) wrong("a record's checksum is wrong: " + entry.path().string());
      if (begin > 0) {
        // Field 1 is the time, 9 bytes; field 2 is the step.
        std::uint64_t step = 0;
        for (std::size_t at = 10, shift = 0;; ++at, shift += 7) {
          step |= (std::uint64_t{static_cast<unsigned char>(payload.at(at))} & 127) << shift;
          if (!(payload[at] & 128)) break;
        }
        if (payload != mr::detail::tensorboard_event(row_of(step)) || !steps.insert(step).second)
          wrong("step " + std::to_string(step) + " is unknown or occurs twice");
      }
      begin += record.size();
    }
  }
  if (!steps.empty() && *steps.rbegin() + 1 != steps.size()) wrong("a step is missing");
  return steps.size();
}

}  // namespace

std::span<const kind> line_kinds() {
  static constexpr kind all[] = {{"quarantine", 60, write_quarantine, check_quarantine, true},
                                 {"json_lines", 60, write_json, check_json, true},
                                 {"tensorboard", 60, write_tensorboard, check_tensorboard, true}};
  return all;
}

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
