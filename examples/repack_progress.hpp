// What repack has done already, and of what: so that an interrupted run goes on behind its last finished shard.
//
//   repack_progress progress({.inputs = shards, .outputs = paths, .list = "out/train.repack", .options = "q 90"});
//   progress.finished(0);         // whether the first output is there, made of this input with these options
//
// A shard appears under its name when it is complete, so one that is there is finished, if the list of this pattern
// names its input: name, bytes, time of its last change. The list is written before the first shard. Further inputs may
// be added at the end. Files that an interrupted run left half written are removed. What is made once for all shards,
// such as codes that they share, is the second line of the list, and is not made again.
// Errors: setup_error for other options, for inputs that are others or have changed since, and for outputs that are
// there but in no list: nothing is ever written over. Threads: one; of one pattern there is one run at a time.
#pragma once

#include <millrace/base/error.hpp>
#include <millrace/io/file/atomic_file.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

struct repack_task {
  std::vector<std::string> inputs{}, outputs{};   ///< paths, one output for each input
  std::string list{};                             ///< path of the list
  std::string options{};                          ///< one line
  /// Makes a line, where all shards need something in common; called at most once, before anything is written.
  std::function<std::string()> make_once{};
};

class repack_progress {
 public:
  explicit repack_progress(const repack_task& task) : finished_(task.inputs.size(), false) {
    const std::string before = read(task.list), inputs = describe_inputs(task);
    std::string now = "repack 1: " + task.options + "\n";
    const std::size_t lines_before_inputs = task.make_once ? 2 : 1;
    if (task.make_once) made_once_ = line_behind(now, before);
    const bool made_now = task.make_once && made_once_.empty();
    if (!made_now) now += made_once_ + inputs;
    if (!now.starts_with(std::string_view(before).substr(0, now.size()))) refuse_other(task.list, now, before);
    if (!made_now && before.size() > now.size()) refuse_other(task.list, now, before);
    const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      if (!std::filesystem::exists(task.outputs[i])) continue;
      if (i + lines_before_inputs >= lines)
        throw millrace::setup_error("'" + millrace::printable(task.outputs[i]) + "' is there already, and '" +
                                        millrace::printable(task.list) + "' does not have it",
                                    "Name another pattern, or move that file away");
      finished_[i] = true;
    }
    if (made_now) {
      made_once_ = task.make_once() + "\n";
      now += made_once_ + inputs;
      if (!now.starts_with(before)) refuse_other(task.list, now, before);
    }
    if (const auto folder = std::filesystem::path(task.list).parent_path(); !folder.empty())
      std::filesystem::create_directories(folder);
    remove_unfinished(task);
    if (now == before) return;
    millrace::atomic_file file(task.list);
    file.append(now);
    file.commit();
  }

  bool finished(std::size_t shard) const { return finished_[shard]; }
  /// Returns the line that was made once, now or by an earlier run.
  std::string made_once() const { return made_once_.substr(0, made_once_.find('\n')); }
  std::size_t count() const { return static_cast<std::size_t>(std::count(finished_.begin(), finished_.end(), true)); }

 private:
  static std::string describe_inputs(const repack_task& task) {
    std::string text;
    for (const auto& input : task.inputs) {
      struct ::stat status {};
      if (::stat(input.c_str(), &status) != 0)
        throw millrace::io_error("'" + millrace::printable(input) + "' cannot be looked at", "Check the path");
      text += millrace::printable(std::filesystem::path(input).filename().string()) + ": " +
              std::to_string(status.st_size) + " bytes, changed " + std::to_string(status.st_mtim.tv_sec) + "s " +
              std::to_string(status.st_mtim.tv_nsec) + "ns\n";
    }
    return text;
  }

  /// Returns the line behind the first one, with its end; empty if it is not there, or not whole.
  static std::string line_behind(const std::string& first, const std::string& list) {
    const auto end = list.find('\n', first.size());
    return list.starts_with(first) && end != list.npos ? list.substr(first.size(), end + 1 - first.size()) : "";
  }

  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  [[noreturn]] static void refuse_other(const std::string& list, std::string_view now, std::string_view before) {
    const auto differs = std::mismatch(now.begin(), now.end(), before.begin(), before.end()).first - now.begin();
    const auto line_of = [differs](std::string_view text) {
      const std::size_t at = static_cast<std::size_t>(differs);
      const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return millrace::printable(text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin));
    };
    throw millrace::setup_error("'" + millrace::printable(list) + "' was begun with other options or shards: it has '" +
                                    line_of(before) + "', and now it would be '" + line_of(now) + "'",
                                "Repeat the first command to go on with it; to begin anew name another pattern");
  }

  static void remove_unfinished(const repack_task& task) {
    std::set<std::string> names{std::filesystem::path(task.list).filename().string()};
    for (const auto& output : task.outputs) names.insert(std::filesystem::path(output).filename().string());
    const auto folder = std::filesystem::path(task.list).parent_path();
    std::vector<std::filesystem::path> unfinished;
    for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder)) {
      const std::string name = entry.path().filename().string();   // ".train-000.tar.4711-0.partial"
      if (!name.starts_with(".") || !name.ends_with(".partial")) continue;
      const std::string part = entry.path().stem().string();
      if (names.contains(part.substr(1, part.rfind('.') - 1))) unfinished.push_back(entry.path());
    }
    for (const auto& path : unfinished) std::filesystem::remove(path);
  }

  std::vector<bool> finished_;
  std::string made_once_;   // with the end of its line
};
