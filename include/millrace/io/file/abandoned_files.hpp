// Removes temporary files of atomic_file (io/file/atomic_file.hpp) whose writer was killed before the file was
// complete.
//
//   const auto is_shard = [](std::string_view final_name) { return final_name.ends_with(".tar"); };
//   mr::detail::remove_abandoned_files("out/", mr::detail::posix_files(), is_shard);
//
// A live writer holds a lock on its file. The system releases the lock when the process ends. The file name contains
// the id of the running kernel (kernel_id()), because other machines possibly do not see the lock. Only files with the
// id of the running kernel are removed. Files of other machines, and files from before a reboot, stay.
// Errors: none. A file that cannot be examined stays. Threads: any thread.
#pragma once

#include <millrace/io/file/posix_files.hpp>

#include <memory>
#include <string>
#include <string_view>

#include <dirent.h>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the first twelve hexadecimal digits of the running kernel's boot id. Returns "" on a system without this id.
template <class Files = posix_files>
std::string kernel_id(const Files& files = {}) {
  std::string id;
  const int file = files.open("/proc/sys/kernel/random/boot_id", O_RDONLY);
  if (file == -1) return id;
  char text[36];
  const ssize_t size = files.read_at(file, text, sizeof text, 0);
  files.close(file);
  for (ssize_t i = 0; i < size && id.size() < 12; ++i)
    if (text[i] != '-') id += text[i];
  return id;
}

/// Returns the final name of a temporary file that was written under the kernel `kernel`. Returns "" for other files.
inline std::string_view final_name_of(std::string_view temporary, std::string_view kernel) noexcept {
  constexpr std::string_view end = ".partial";
  if (kernel.empty() || !temporary.starts_with('.') || !temporary.ends_with(end)) return {};
  temporary.remove_prefix(1);
  temporary.remove_suffix(end.size());
  const std::size_t dot = temporary.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view writer = temporary.substr(dot + 1);   // kernel-process-n
  const bool is_own = writer.starts_with(kernel) && writer.substr(kernel.size()).starts_with('-');
  return is_own ? temporary.substr(0, dot) : std::string_view{};
}

/// Removes the file, unless a writer owns its lock or has renamed it.
template <class Files>
void remove_if_abandoned(const std::string& path, const Files& files) noexcept {
  const int file = files.open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
  if (file == -1) return;
  struct ::stat locked{}, now{};
  if (files.try_lock(file) == 0 && files.stat_open(file, locked) == 0 && S_ISREG(locked.st_mode) &&
      files.stat_path(path.c_str(), now) == 0 && now.st_ino == locked.st_ino && now.st_dev == locked.st_dev)
    files.unlink(path.c_str());
  files.close(file);
}

/// Removes each abandoned file in `folder`, if `is_match` returns true for the final name of the file. `folder` is ""
/// or ends with a slash.
template <class Files, class Match>
void remove_abandoned_files(const std::string& folder, const Files& files, const Match& is_match) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.empty() ? "." : folder.c_str()), close);
  const std::string kernel = kernel_id(files);
  if (!opened || kernel.empty()) return;
  while (const dirent* const item = ::readdir(opened.get()))
    if (const std::string_view name = final_name_of(item->d_name, kernel); !name.empty() && is_match(name))
      remove_if_abandoned(folder + item->d_name, files);
}

}}}   // namespace millrace::detail
