// Definitions for file_list.hpp.
#pragma once

#include <millrace/io/file/file_list.hpp>

#include <millrace/base/error.hpp>
#include <millrace/io/file/run_concurrently.hpp>
#include <millrace/item/owner.hpp>

#include <cerrno>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE file_list::file_list(name_list names, storage at, std::uint64_t report_after_ns)
    : file_list(std::move(names), std::move(at), make_shared_object<answers>()) {
  find_files(report_after_ns);
}

MILLRACE_RARE file_list file_list::deferred(name_list names, storage at) {
  return {std::move(names), std::move(at), make_shared_object<answers>()};
}

MILLRACE_RARE void file_list::find_files(std::uint64_t report_after_ns) const {
  if (at_.is_local()) return;
  std::call_once(answers_->once, [&] {
    std::vector<file_stamp> stamps(names_.size());
    std::vector<std::uint8_t> exists(names_.size());
    constexpr std::size_t max_threads = 32;
    run_concurrently({.step = "finds files in the storage",
                      .names = names_,
                      .max_threads = max_threads,
                      .report_after_ns = report_after_ns},
                     [&](std::size_t i) {
                       const std::optional<file_stamp> stamp = find_stamp(at_, names_[i]);
                       exists[i] = stamp.has_value();
                       if (stamp) stamps[i] = *stamp;
                     });
    std::size_t missing = 0;
    std::string first;
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!exists[i] && ++missing <= 3) first += (first.empty() ? "'" : ", '") + printable(names_[i]) + "'";
    if (missing > 0)
      throw setup_error("the storage lacks " + std::to_string(missing) + " of " + std::to_string(names_.size()) +
                            " files: " + first + (missing > 3 ? ", ..." : ""),
                        "Correct the names");
    answers_->stamps = std::move(stamps);
  });
}

MILLRACE_RARE std::unique_ptr<byte_source> file_list::open(std::size_t file, read_meter& meter) const {
  std::unique_ptr<byte_source> opened(new metered_file(at_, names_[file], meter));
  const byte_range all{};
  if (!at_.is_local()) opened->will_read({&all, 1});
  return opened;
}

MILLRACE_RARE void file_list::expect(std::span<const std::size_t> files) const {
  if (at_.is_local()) return;
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const std::size_t file : files) names.push_back(names_[file]);
  at_->expect(names);
}

MILLRACE_RARE file_stamp file_list::stamp(std::size_t file) const {
  if (!at_.is_local()) {
    find_files();
    return answers_->stamps[file];
  }
  if (const auto stamp = find_stamp(at_, names_[file])) return *stamp;
  // Without the size and time of the file, a resume point could match other data.
  throw io_error("cannot get the size of the file: " + reason_of(errno), "Check the file, and the disk or mount",
                 {.shard = names_[file]});
}

}}}   // namespace millrace::detail
