// A folder that looks like /sys of a machine with the NUMA nodes and PCI devices that a test wants.
//
//   fake_sysfs sys;
//   sys.add_node(0, "0-3");                      // a node with memory, and its cores
//   sys.add_device("0000:a1:00.0", "0");         // a PCI device, and its node as sysfs writes it
//   numa_node_of_pci_device("0000:a1:00.0", sys.root());
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

class fake_sysfs {
 public:
  fake_sysfs() {
    std::string name = (std::filesystem::temp_directory_path() / "millrace-sysfs-XXXXXX").string();
    root_ = mkdtemp(name.data()) ? name : "";
  }
  fake_sysfs(const fake_sysfs&) = delete;
  fake_sysfs& operator=(const fake_sysfs&) = delete;
  ~fake_sysfs() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const noexcept { return root_; }

  void add_node(unsigned node, const std::string& cores) {
    nodes_ += (nodes_.empty() ? "" : ",") + std::to_string(node);
    write("devices/system/node/has_memory", nodes_);
    write("devices/system/node/node" + std::to_string(node) + "/cpulist", cores);
  }
  void add_device(const std::string& address, const std::string& node) {
    write("bus/pci/devices/" + address + "/numa_node", node);
  }

 private:
  void write(const std::string& path, const std::string& line) const {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << line << '\n';
  }

  std::string root_, nodes_;
};
