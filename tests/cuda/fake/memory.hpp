// Allocations of the stand-in: pages that fault when they are used at the wrong time.
//
//   memory all;
//   void* p = all.allocate({.what = memory::kind::device, .bytes = 100, .device = 0});   // PROT_NONE for the host
//   std::memcpy(all.access(p), from, 100);                                               // the stand-in's own view
//   all.hold_source(from, 100); ... all.release_source(from, 100);                       // read-only in between
//   std::string overrun = all.free(p);                                                   // faults from now on
//
// Device memory is a file in memory, mapped twice: at the address that the program knows, which is closed but while a
// kernel runs, and at one that only the stand-in knows. Host memory is mapped once, so that ThreadSanitizer sees the
// copies' reads and writes of it. Addresses are not used again before clear(). Not thread-safe.
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
  };

  struct allocation {
    kind what = kind::host;
    std::size_t bytes = 0;
    int device = 0;
    std::byte* address = nullptr;
    std::byte* view = nullptr;              ///< the stand-in's own; the same address where there is one mapping
    std::byte* pages = nullptr;             ///< the first whole page
    std::vector<std::uint32_t> readers{};   ///< of each whole page: copies under way that read it
    std::size_t users = 0;                  ///< operations under way
  };

  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { clear(); }

  /// Null where the system has no more.
  void* allocate(const request& r);
  /// False where a part is allocated or registered already.
  bool register_host(void* address, const request& r);
  /// Forgets the allocation at this very address; what is not empty says what was found wrong.
  std::string free(void* address);
  void clear();

  /// What this address lies in, null if it is no memory of ours.
  allocation* find(const void* address);
  const allocation* find(const void* address) const { return const_cast<memory*>(this)->find(address); }
  /// Whether it was memory of ours and is no more.
  bool was_freed(const void* address) const;
  /// Where the stand-in reads and writes it.
  std::byte* access(const void* address) const;
  /// Writes there even if a copy under way has made the page read-only.
  void write(void* to, const void* from, std::size_t bytes);
  void fill(void* to, int value, std::size_t bytes);
  bool has_readers(const void* address, std::size_t bytes) const;

  void hold_source(const void* from, std::size_t bytes) { count_readers(from, bytes, +1); }
  void release_source(const void* from, std::size_t bytes) { count_readers(from, bytes, -1); }

  /// Opens the device's memory to the host, as long as a kernel runs there.
  void open(int device);
  void close(int device);

  std::size_t count(kind what) const;
  std::size_t bytes(kind what, int device) const;

 private:
  struct page_range {
    std::size_t first = 0, end = 0;
  };
  page_range whole_pages(const allocation& a, const void* address, std::size_t bytes) const;
  void count_readers(const void* from, std::size_t bytes, int change);
  void protect(const allocation& a, page_range pages, bool writable);
  bool is_open(int device) const;

  std::map<const std::byte*, allocation> live_;              // by their last byte
  std::vector<std::pair<std::byte*, std::size_t>> retired_;  // freed, and unmapped at the end only
  std::vector<int> open_;                                    // by device: kernels that run
};

}  // namespace fake_cuda::detail
