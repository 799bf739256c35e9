// Definitions for quarantine_list.hpp.
#pragma once

#include <millrace/run/quarantine_list.hpp>

#include <millrace/base/json_writer.hpp>
#include <millrace/base/text.hpp>
#include <millrace/io/file/append_file.hpp>
#include <millrace/sources/list/listed_key.hpp>

#include <algorithm>
#include <utility>

namespace millrace { inline namespace MILLRACE_ABI {

namespace detail { namespace quarantine {

/// Checks the name and creates the folders.
MILLRACE_RARE append_file_options prepared(const std::string& path) {
  if (!path.ends_with(".jsonl") && !path.ends_with(".ndjson"))
    throw setup_error("the name of a quarantine list ends in neither .jsonl nor .ndjson: got '" + printable(path) + "'",
                      "Use a name such as \"quarantine-0.jsonl\": keys_from() recognizes the format of the "
                      "list by this ending");
  if (const std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0)
    create_folders(path.substr(0, slash));
  return {.path = path};
}

MILLRACE_RARE void append_name(std::string& line, const char* member, std::string_view name) {
  line += std::string("\"") + member + "\": ";
  append_json_string(line, name);
  line += ", ";
  if (is_utf8(name)) return;
  line += std::string("\"") + member + "_hex\": \"";
  for (const char byte : name) line += hex(static_cast<unsigned char>(byte), 2);
  line += "\", ";
}

MILLRACE_RARE void append_number(std::string& line, const char* member, std::uint64_t number) {
  if (number == error_location::unknown) return;
  line += std::string("\"") + member + "\": ";
  append_json_number(line, number);
  line += ", ";
}

}}   // namespace detail::quarantine

MILLRACE_RARE quarantine_list::quarantine_list(const std::string& path) : file_(detail::quarantine::prepared(path)) {
  detail::repair_last_line(file_);
  file_.sync_name();
  if (file_.size_bytes() > 0) read_entries();
}

MILLRACE_RARE void quarantine_list::read_entries() {
  const std::string all = file_.read(0, static_cast<std::size_t>(file_.size_bytes()));
  std::uint64_t number = 0;
  for (std::size_t at = 0, end = 0; at < all.size(); at = end + 1) {
    end = std::min(all.find('\n', at), all.size());
    ++number;
    if (end == at) continue;
    const detail::listed_key entry = detail::read_listed_key(std::string_view(all).substr(at, end - at),
                                                             {.stage = "quarantine_list",
                                                              .shard = file_.path(),
                                                              .key = "line " + std::to_string(number),
                                                              .offset_bytes = at});
    entries_.insert(identity(entry.shard, entry.key));
  }
}

MILLRACE_RARE std::string quarantine_list::identity(std::string_view shard, std::string_view key) {
  const std::string_view name = shard.substr(shard.rfind('/') + 1);
  if (!name.empty()) shard = name;   // a folder is not a shard
  return std::to_string(shard.size()) + '/' + std::string(shard) + std::string(key);
}

MILLRACE_RARE bool quarantine_list::add(const damaged_sample& sample) {
  std::string id = identity(sample.shard, sample.key);
  const bool in_any_shard = !sample.key.empty() && entries_.contains(identity({}, sample.key));
  if (in_any_shard || entries_.contains(id)) return false;

  std::string line = "{";
  detail::quarantine::append_name(line, "shard", sample.shard);
  if (sample.key.empty()) line += "\"key\": null, ";
  else detail::quarantine::append_name(line, "key", sample.key);
  detail::quarantine::append_number(line, "offset", sample.offset_bytes);
  detail::quarantine::append_number(line, "position", sample.position);
  detail::quarantine::append_number(line, "epoch", sample.epoch);
  line += "\"stage\": ";
  detail::append_json_string(line, sample.stage);
  line += ", \"reason\": ";
  detail::append_json_string(line, sample.reason);
  line += "}\n";
  file_.append(line);
  file_.sync();
  entries_.insert(std::move(id));
  return true;
}

}}   // namespace millrace
