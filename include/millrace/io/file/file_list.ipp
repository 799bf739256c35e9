// Defines what file_list.hpp declares.
#pragma once

#include <millrace/io/file/file_list.hpp>

#include <millrace/base/error.hpp>
#include <millrace/sync/started_thread.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Asks for the stamps of all files. Throws the error of the first file that has one.
MILLRACE_INLINE std::vector<std::optional<file_stamp>> find_stamps(const storage& at,
                                                                   const std::vector<std::string>& names) {
  constexpr std::size_t max_threads = 32;
  std::vector<std::optional<file_stamp>> found(names.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = names.size();
  std::exception_ptr why;
  const auto ask = [&](std::size_t) {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < names.size();) try {
        found[i] = find_stamp(at, names[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) why = std::current_exception();
        failed = std::min(failed, i);
      }
  };
  std::vector<std::thread> others;
  try {
    start_threads(others, std::min(names.size(), max_threads), ask);
  } catch (...) {   // too few threads: this one does the rest
  }
  ask(0);
  for (auto& t : others) t.join();
  if (why) std::rethrow_exception(why);
  return found;
}

MILLRACE_INLINE file_list::file_list(std::vector<std::string> names, storage at)
    : names_(std::move(names)), at_(std::move(at)) {
  if (at_.is_local()) return;
  std::vector<file_stamp> stamps(names_.size());
  std::size_t missing = 0;
  std::string named;
  const auto found = find_stamps(at_, names_);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (found[i]) stamps[i] = *found[i];
    else if (++missing <= 3) named += (named.empty() ? "'" : ", '") + printable(names_[i]) + "'";
  }
  if (missing > 0)
    throw setup_error("the storage lacks " + std::to_string(missing) + " of " + std::to_string(names_.size()) +
                          " files: " + named + (missing > 3 ? ", ..." : ""),
                      "Check the names");
  stamps_ = std::make_shared<const std::vector<file_stamp>>(std::move(stamps));
}

MILLRACE_INLINE std::unique_ptr<byte_source> file_list::open(std::size_t file, read_meter& meter) const {
  auto opened = std::make_unique<metered_file>(at_, names_[file], meter);
  const byte_range all{};
  if (!at_.is_local()) opened->will_read({&all, 1});
  return opened;
}

MILLRACE_INLINE void file_list::expect(std::span<const std::size_t> files) const {
  if (at_.is_local()) return;
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const std::size_t file : files) names.push_back(names_[file]);
  at_->expect(names);
}

MILLRACE_INLINE file_stamp file_list::stamp(std::size_t file) const noexcept {
  if (stamps_) return (*stamps_)[file];
  try {
    return find_stamp(at_, names_[file]).value_or(file_stamp());
  } catch (...) {
    return {};
  }
}

}}}  // namespace millrace::detail
