// Reads the NUMA node of a PCI device and the cores of a node from sysfs.
//
//   if (const auto node = mr::detail::numa_node_of_pci_device("0000:81:00.0"))   // empty on a machine with one node
//     const mr::detail::core_scope here(mr::detail::cores_of_numa_node(*node));  // binds new threads too
//
// The functions accept the root of sysfs, so that tests can pass their own tree.
// Errors: none; the result is empty if a value cannot be read. Threads: any thread; a core_scope belongs to one thread.
// Source of the formats: the kernel's Documentation/ABI, sysfs-bus-pci and sysfs-devices-node.
#pragma once

#include <millrace/base/version.hpp>

#include <optional>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

/// Parses a list in the kernel's format, such as "0-3,8", and returns its numbers in ascending order. The result is
/// empty if the text is not such a list. Numbers above 4,095 are omitted.
std::vector<unsigned> numbers_in_sysfs_list(const std::string& text);

/// Returns the NUMA node nearest to a PCI device. The address, such as "0000:81:00.0", may use upper or lower case. The
/// result is empty if the kernel does not report the node, or if fewer than two nodes have memory.
std::optional<unsigned> numa_node_of_pci_device(std::string address, const std::string& sysfs = "/sys");

/// Returns the cores of a NUMA node.
std::vector<unsigned> cores_of_numa_node(unsigned node, const std::string& sysfs = "/sys");

/// Returns the members of `cores` on which the calling thread may run.
std::vector<unsigned> allowed_cores(const std::vector<unsigned>& cores);

/// Binds the calling thread to the specified cores until the end of the scope. Threads that are started within the
/// scope remain bound. Has no effect if the list is empty or the kernel refuses.
class core_scope {
 public:
  explicit core_scope(const std::vector<unsigned>& cores) noexcept;
  core_scope(const core_scope&) = delete;
  core_scope& operator=(const core_scope&) = delete;
  ~core_scope();

  /// Returns whether the thread is bound to the cores.
  bool is_bound() const noexcept { return changed_; }

 private:
#if defined(__linux__)
  cpu_set_t before_{};
#endif
  bool changed_ = false;
};

}}}   // namespace millrace::detail

#ifndef MILLRACE_COMPILED
#include <millrace/base/impl/numa.inl>
#endif
