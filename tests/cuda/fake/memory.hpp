// Allocations of the fake runtime: pages that fault when they are used at the wrong time.
//
//   memory all;
//   void* p = all.allocate({.what = memory::kind::device, .bytes = 100, .device = 0});   // PROT_NONE for the host
//   std::memcpy(all.access(p), from, 100);                                               // the fake's own view
//   all.hold_source(from, 100); ... all.release_source(from, 100);                       // read-only in between
//   std::string overrun = all.free(p);                                                   // faults from now on
//
// Device memory is a file in memory, mapped twice: at the program's address, which is only accessible while a kernel
// runs, and at a private address of the fake runtime. Host memory is mapped once, so that ThreadSanitizer observes the
// copies' accesses. Addresses are not reused before clear(). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fake_cuda::detail {

inline constexpr std::size_t page_bytes = 4096;

class memory {
 public:
  enum class kind { pageable, host, registered, device };

  struct request {
    kind what = kind::host;
    std::size_t bytes = 0;
    int device = 0;
    bool primary = true;   ///< allocated in a primary context
    int core = -1;         ///< of the calling thread
  };

  struct allocation {
    kind what = kind::host;
    std::size_t bytes = 0;
    int device = 0;
    bool primary = true;                    ///< allocated in a primary context
    int core = -1;                          ///< of the thread that allocated it
    std::byte* address = nullptr;
    std::byte* view = nullptr;              ///< the fake's own; equal to the address if there is one mapping
    std::byte* pages = nullptr;             ///< the first full page
    std::vector<std::uint32_t> readers{};   ///< by full page: copies in progress that read it
    std::size_t users = 0;                  ///< operations in progress
  };

  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { clear(); }

  /// Null if the system has no more memory.
  void* allocate(const request& r);
  /// False if a part is already allocated or registered.
  bool register_host(void* address, const request& r);
  /// Removes the allocation at exactly this address. Returns a description of damage, or an empty text.
  std::string free(void* address);
  void clear();

  /// The allocation that contains this address; null if there is none.
  allocation* find(const void* address);
  const allocation* find(const void* address) const { return const_cast<memory*>(this)->find(address); }
  /// Whether the address belongs to a freed allocation.
  bool was_freed(const void* address) const;
  /// The address at which the fake runtime accesses it.
  std::byte* access(const void* address) const;
  /// Writes even if a copy in progress has made the page read-only.
  void write(void* to, const void* from, std::size_t bytes);
  void fill(void* to, int value, std::size_t bytes);
  bool has_readers(const void* address, std::size_t bytes) const;

  void hold_source(const void* from, std::size_t bytes) { count_readers(from, bytes, +1); }
  void release_source(const void* from, std::size_t bytes) { count_readers(from, bytes, -1); }

  /// Makes the device's memory accessible to the host while a kernel runs there.
  void open(int device);
  void close(int device);

  std::size_t count(kind what) const;
  std::vector<allocation> all(kind what) const;
  std::size_t bytes(kind what, int device) const;

 private:
  struct page_range {
    std::size_t first = 0, end = 0;
  };
  page_range full_pages(const allocation& a, const void* address, std::size_t bytes) const;
  void count_readers(const void* from, std::size_t bytes, int change);
  void protect(const allocation& a, page_range pages, bool writable);
  bool is_open(int device) const;

  std::map<const std::byte*, allocation> live_;              // by last byte
  std::vector<std::pair<std::byte*, std::size_t>> retired_;  // freed, but only unmapped at the end
  std::vector<int> open_;                                    // by device: running kernels
};

}  // namespace fake_cuda::detail
