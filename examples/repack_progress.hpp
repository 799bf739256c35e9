// Records the finished shards of repack, their inputs and options, so that an interrupted run can continue.
//
//   repack_progress progress({.inputs = shards, .outputs = paths, .list = "out/train.repack", .options = "q 90"});
//   progress.finished(0);         // whether the first output exists, created from this input with these options
//
// A shard gets its name when it is complete. An existing shard is therefore finished if the list of this pattern
// contains its input: name, bytes, modification time. The list is written before the first shard. More inputs may be
// added at the end. Incomplete files of an interrupted run are removed. A line that all shards have in common, such as
// shared codes, is the second line of the list, and is computed once.
// Errors: setup_error for other options, for different or modified inputs, and for existing outputs that no list
// contains. Existing files are never overwritten.
// Threads: one; only one run per pattern at a time.
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
  /// Optional: returns the line that all shards have in common. Called at most once, before anything is written.
  std::function<std::string()> make_common_line{};
};

class repack_progress {
 public:
  explicit repack_progress(const repack_task& task) : finished_(task.inputs.size(), false) {
    const std::string before = read(task.list), inputs = describe_inputs(task);
    std::string now = "repack 1: " + task.options + "\n";
    const std::size_t lines_before_inputs = task.make_common_line ? 2 : 1;
    if (task.make_common_line) common_line_ = line_after(now, before);
    const bool is_new = task.make_common_line && common_line_.empty();
    if (!is_new) now += common_line_ + inputs;
    if (!now.starts_with(std::string_view(before).substr(0, now.size()))) refuse_other(task.list, now, before);
    if (!is_new && before.size() > now.size()) refuse_other(task.list, now, before);
    const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    for (std::size_t i = 0; i < task.outputs.size(); ++i) {
      if (!std::filesystem::exists(task.outputs[i])) continue;
      if (i + lines_before_inputs >= lines)
        throw millrace::setup_error("'" + millrace::printable(task.outputs[i]) + "' exists already, and '" +
                                        millrace::printable(task.list) + "' does not contain it",
                                    "Name another pattern, or move that file away");
      finished_[i] = true;
    }
    if (is_new) {
      common_line_ = task.make_common_line() + "\n";
      now += common_line_ + inputs;
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
  /// Returns the common line, of this run or of an earlier one.
  std::string common_line() const { return common_line_.substr(0, common_line_.find('\n')); }
  std::size_t count() const { return static_cast<std::size_t>(std::count(finished_.begin(), finished_.end(), true)); }

 private:
  static std::string describe_inputs(const repack_task& task) {
    std::string text;
    for (const auto& input : task.inputs) {
      struct ::stat status{};
      if (::stat(input.c_str(), &status) != 0)
        throw millrace::io_error("'" + millrace::printable(input) + "' cannot be inspected", "Check the path");
      text += millrace::printable(std::filesystem::path(input).filename().string()) + ": " +
              std::to_string(status.st_size) + " bytes, changed " + std::to_string(status.st_mtim.tv_sec) + "s " +
              std::to_string(status.st_mtim.tv_nsec) + "ns\n";
    }
    return text;
  }

  /// Returns the line after the first one, with its end; empty if it is missing or incomplete.
  static std::string line_after(const std::string& first, const std::string& list) {
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
    throw millrace::setup_error("'" + millrace::printable(list) + "' was created with other options or shards: it " +
                                    "contains '" + line_of(before) + "', expected '" + line_of(now) + "'",
                                "Repeat the first command to continue it, or name another pattern to start again");
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
  std::string common_line_;   // with its newline
};
