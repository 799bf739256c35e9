// Definitions for numa.hpp.
#pragma once

#include <millrace/base/numa.hpp>

#include <millrace/base/machine.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Returns the first line of a file in sysfs, which is at most a page long.
MILLRACE_RARE std::string sysfs_line(const std::string& path) {
  char text[4097] = {};
  if (const auto file = open_text(path.c_str()))
    if (!std::fgets(text, sizeof text, file.get())) text[0] = 0;
  return text;
}

MILLRACE_RARE std::vector<unsigned> numbers_in_sysfs_list(const std::string& text) {
  constexpr unsigned long limit = 4'096;
  std::vector<bool> listed(limit);
  const char* at = text.c_str();
  const auto number = [&](unsigned long& value) {
    if (!std::isdigit(static_cast<unsigned char>(*at))) return false;
    char* end = nullptr;
    value = std::strtoul(at, &end, 10);
    at = end;
    return true;
  };
  while (*at && *at != '\n') {
    unsigned long first = 0, last = 0;
    if (!number(first)) return {};
    last = first;
    if (*at == '-' && (++at, !number(last))) return {};
    for (unsigned long i = first; i <= last && i < limit; ++i) listed[i] = true;
    if (*at == ',') ++at;
    else if (*at && *at != '\n') return {};
  }
  std::vector<unsigned> numbers;
  for (unsigned i = 0; i < limit; ++i)
    if (listed[i]) numbers.push_back(i);
  return numbers;
}

MILLRACE_RARE std::optional<unsigned> numa_node_of_pci_device(std::string address, const std::string& sysfs) {
  const std::vector<unsigned> nodes = numbers_in_sysfs_list(sysfs_line(sysfs + "/devices/system/node/has_memory"));
  if (nodes.size() < 2) return {};
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));   // as in sysfs
  const std::vector<unsigned> node = numbers_in_sysfs_list(
      sysfs_line(sysfs + "/bus/pci/devices/" + address + "/numa_node"));
  if (node.size() != 1 || !std::binary_search(nodes.begin(), nodes.end(), node[0])) return {};   // "-1": unknown
  return node[0];
}

MILLRACE_RARE std::vector<unsigned> cores_of_numa_node(unsigned node, const std::string& sysfs) {
  return numbers_in_sysfs_list(sysfs_line(sysfs + "/devices/system/node/node" + std::to_string(node) + "/cpulist"));
}

#if defined(__linux__)

MILLRACE_RARE std::vector<unsigned> allowed_cores(const std::vector<unsigned>& cores) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<unsigned> allowed;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return allowed;
  for (const unsigned core : cores)
    if (core < CPU_SETSIZE && CPU_ISSET(core, &mask)) allowed.push_back(core);
  return allowed;
}

MILLRACE_RARE core_scope::core_scope(const std::vector<unsigned>& cores) noexcept {
  if (cores.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const unsigned core : cores)
    if (core < CPU_SETSIZE) CPU_SET(core, &mask);
  changed_ = sched_setaffinity(0, sizeof mask, &mask) == 0;
}

MILLRACE_RARE core_scope::~core_scope() {
  if (changed_) sched_setaffinity(0, sizeof before_, &before_);
}

#else

MILLRACE_RARE std::vector<unsigned> allowed_cores(const std::vector<unsigned>&) { return {}; }
MILLRACE_RARE core_scope::core_scope(const std::vector<unsigned>&) noexcept {}
MILLRACE_RARE core_scope::~core_scope() = default;

#endif

}}}   // namespace millrace::detail
