// Definitions for file_list.hpp.
#pragma once

#include <millrace/io/file/file_list.hpp>

#include <millrace/base/error.hpp>
#include <millrace/item/owner.hpp>
#include <millrace/sync/slow_step.hpp>
#include <millrace/sync/start_thread.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <thread>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_RARE std::string name_list::operator[](std::size_t number) const { return std::string(view(number)); }

MILLRACE_RARE std::vector<std::string> name_list::strings() const {
  std::vector<std::string> names;
  names.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) names.emplace_back(view(i));
  return names;
}

MILLRACE_RARE name_list::name_list(const std::vector<std::string>& names) : name_list(names.data(), names.size()) {}

MILLRACE_RARE name_list::name_list(std::initializer_list<std::string> names) : name_list(names.begin(), names.size()) {}

MILLRACE_RARE name_list::name_list(const std::string* begin, std::size_t size) {
  auto all = make_shared_object<names>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < size; ++i) bytes += begin[i].size();
  all->text.reserve(bytes);
  all->ends.reserve(size);
  for (std::size_t i = 0; i < size; ++i) all->ends.push_back(all->text.append(begin[i]).size());
  all_ = std::move(all);
}

MILLRACE_RARE std::string_view name_list::common_folder() const noexcept {
  if (size() == 0) return {};
  std::string_view common = view(0);
  for (std::size_t i = 1; i < size(); ++i) {
    const std::string_view name = view(i);
    common = common.substr(
        0, static_cast<std::size_t>(std::mismatch(common.begin(), common.end(), name.begin(), name.end()).first -
                                    common.begin()));
  }
  return common.substr(0, common.rfind('/') + 1);   // without a slash, npos + 1 is 0
}

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
                       const std::optional<file_stamp> stamp = find_file_stamp(at_, names_[i]);
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
  if (const auto stamp = find_file_stamp(at_, names_[file])) return *stamp;
  // Without the size and time of the file, a resume point could match other data.
  throw io_error("cannot get the size of the file: " + reason_of(errno), "Check the file, and the disk or mount",
                 {.shard = names_[file]});
}

MILLRACE_RARE void run_concurrently(const run_concurrently_options& o, const std::function<void(std::size_t)>& act) {
  slow_step step(o.step, {.items = o.names.size(), .notices = o.notices, .after_ns = o.report_after_ns});
  run_concurrently(o.names.size(), o.max_threads, [&](std::size_t i) {
    const slow_step::item here(step, o.names.view(i));
    act(i);
  });
}

MILLRACE_RARE void run_concurrently(std::size_t count, std::size_t max_threads,
                                    const std::function<void(std::size_t)>& act) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed = count;
  std::exception_ptr first_error;
  const auto work = [&](std::size_t) {
    for (std::size_t i = 0; (i = next.fetch_add(1)) < count;) try {
        act(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) first_error = std::current_exception();
        failed = std::min(failed, i);
      }
  };
  std::vector<std::thread> others;
  try {
    start_threads(others, std::max<std::size_t>(std::min(count, max_threads), 1) - 1, work);
  } catch (...) {   // too few threads: the calling thread executes the remaining calls
  }
  work(0);
  for (auto& t : others) t.join();
  if (first_error) std::rethrow_exception(first_error);
}

}}}   // namespace millrace::detail
