// Definitions for write_set_index.hpp.
#pragma once

#include <millrace/sources/prepare/write_set_index.hpp>

#include <millrace/base/text.hpp>
#include <millrace/io/file/atomic_file.hpp>
#include <millrace/io/index/set/shard_heads.hpp>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

MILLRACE_INLINE set_index_totals write_set_index_of(const std::vector<std::string>& shards, const std::string& path,
                                                    const write_set_index_options& options) {
  notice_outlet notices(options.notice);
  const set_index index = build_set_index(
      shards, {.files = {.cache_folder = options.index_folder, .storage = options.storage}, .notices = &notices});
  set_index_totals all{.shards = index.size(), .left_out = shards.size() - index.size()};
  for (const set_index_shard& s : index.shards()) {
    all.samples += s.samples;
    all.bytes += s.size_bytes;
  }
  const std::size_t name_at = path.rfind('/') + 1;   // without a slash, npos + 1 is 0
  remove_abandoned_files(path.substr(0, name_at), posix_files(),
                         [name = path.substr(name_at)](std::string_view of_file) { return of_file == name; });
  millrace::atomic_file file(path);
  file.append(bytes_of(index.text()));
  file.commit();
  return all;
}

}}}   // namespace millrace::detail
