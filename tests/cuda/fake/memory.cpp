#include "memory.hpp"

#include "fake_cuda.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fake_cuda::detail {
namespace {

std::size_t rounded_up(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Reserves inaccessible address space, with an extra page at the end so that overruns fault.
std::byte* reserve(std::size_t bytes) {
  void* at = mmap(nullptr, bytes + page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

void* memory::allocate(const request& r) {
  const std::size_t size = rounded_up(r.bytes);
  std::byte* const at = reserve(size);
  if (!at) return nullptr;
  retired_.emplace_back(at, size + page_bytes);   // unmapped at the end in any case
  std::byte* view = at;
  if (r.what == kind::device) {
    const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    void* mine = MAP_FAILED;
    if (ftruncate(file, static_cast<off_t>(size)) == 0 &&
        mmap(at, size, is_open(r.device) ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == at) {
      mine = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    ::close(file);
    if (mine == MAP_FAILED) return nullptr;
    view = static_cast<std::byte*>(mine);
  } else if (mprotect(at, size, PROT_READ | PROT_WRITE) != 0) {
    return nullptr;
  }
  std::memset(view, poison, size);
  live_[at + r.bytes - 1] = {.what = r.what, .bytes = r.bytes, .device = r.device, .primary = r.primary,
                             .core = r.core, .address = at, .view = view, .pages = at,
                             .readers = std::vector<std::uint32_t>(size / page_bytes)};
  return at;
}

bool memory::register_host(void* address, const request& r) {
  std::byte* const at = static_cast<std::byte*>(address);
  const auto next = live_.lower_bound(at);
  if (next != live_.end() && next->second.address < at + r.bytes) return false;
  std::byte* const first = at + (rounded_up(number(at)) - number(at));
  const std::byte* const end = at + r.bytes;
  const std::size_t pages = end > first ? static_cast<std::size_t>(end - first) / page_bytes : 0;
  live_[at + r.bytes - 1] = {.what = kind::registered, .bytes = r.bytes, .device = r.device, .primary = r.primary,
                             .core = r.core, .address = at, .view = at, .pages = first,
                             .readers = std::vector<std::uint32_t>(pages)};
  return true;
}

std::string memory::free(void* address) {
  allocation* const a = find(address);
  std::string wrong;
  if (a->users) wrong = "memory of a copy in progress";
  protect(*a, {0, a->readers.size()}, true);
  if (a->what != kind::registered) {
    const std::size_t size = rounded_up(a->bytes);
    if (std::any_of(a->view + a->bytes, a->view + size, [](std::byte b) { return b != std::byte{poison}; })) {
      wrong += wrong.empty() ? "" : ", and ";
      wrong += "its end was overwritten";
    }
    if (a->view != a->address) munmap(a->view, size);
    // The address stays reserved, so that a late use faults instead of accessing other memory.
    mmap(a->address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  live_.erase(a->address + a->bytes - 1);
  return wrong;
}

void memory::clear() {
  for (auto& [last, a] : live_) {
    if (a.what == kind::registered) protect(a, {0, a.readers.size()}, true);
    if (a.view != a.address) munmap(a.view, rounded_up(a.bytes));
  }
  live_.clear();
  for (const auto& [address, size] : retired_) munmap(address, size);
  retired_.clear();
  open_.clear();
}

memory::allocation* memory::find(const void* address) {
  const auto it = live_.lower_bound(static_cast<const std::byte*>(address));
  return it != live_.end() && it->second.address <= address ? &it->second : nullptr;
}

bool memory::was_freed(const void* address) const {
  const auto holds = [address](const auto& range) {
    return range.first <= address && address < range.first + range.second;
  };
  return !find(address) && std::any_of(retired_.begin(), retired_.end(), holds);
}

std::byte* memory::access(const void* address) const {
  std::byte* const at = const_cast<std::byte*>(static_cast<const std::byte*>(address));
  const allocation* const a = find(address);
  return a ? a->view + (at - a->address) : at;
}

memory::page_range memory::full_pages(const allocation& a, const void* address, std::size_t bytes) const {
  if (a.readers.empty()) return {};
  const std::size_t from = number(address) > number(a.pages) ? number(address) - number(a.pages) : 0;
  const std::size_t to = number(address) + bytes > number(a.pages) ? number(address) + bytes - number(a.pages) : 0;
  return {std::min(from / page_bytes, a.readers.size()), std::min(rounded_up(to) / page_bytes, a.readers.size())};
}

bool memory::has_readers(const void* address, std::size_t bytes) const {
  const allocation* const a = find(address);
  if (!a) return false;
  const page_range pages = full_pages(*a, address, bytes);
  for (std::size_t i = pages.first; i < pages.end; ++i) {
    if (a->readers[i]) return true;
  }
  return false;
}

void memory::write(void* to, const void* from, std::size_t bytes) {
  const allocation* const a = find(to);
  const page_range pages = a ? full_pages(*a, to, bytes) : page_range{};
  const bool was_read_only = a && a->what != kind::device && has_readers(to, bytes);
  if (was_read_only) protect(*a, pages, true);
  std::memcpy(access(to), access(from), bytes);
  if (was_read_only) {
    for (std::size_t i = pages.first; i < pages.end; ++i) {
      if (a->readers[i]) protect(*a, {i, i + 1}, false);
    }
  }
}

void memory::fill(void* to, int value, std::size_t bytes) {
  if (const allocation* a = find(to); a && a->what == kind::device) {
    std::memset(access(to), value, bytes);
    return;
  }
  const std::vector<std::byte> pattern(bytes, static_cast<std::byte>(value));
  write(to, pattern.data(), bytes);
}

void memory::count_readers(const void* from, std::size_t bytes, int change) {
  allocation* const a = find(from);
  if (!a || a->what == kind::device) return;
  const page_range pages = full_pages(*a, from, bytes);
  // One call changes a run of pages.
  std::size_t start = pages.first;
  for (std::size_t i = pages.first; i < pages.end; ++i) {
    std::uint32_t& readers = a->readers[i];
    const bool was = readers != 0;
    readers += static_cast<std::uint32_t>(change);
    if (was == (readers != 0)) {
      if (i > start) protect(*a, {start, i}, change < 0);
      start = i + 1;
    }
  }
  if (pages.end > start) protect(*a, {start, pages.end}, change < 0);
}

void memory::protect(const allocation& a, page_range pages, bool writable) {
  if (pages.first >= pages.end || a.what == kind::device) return;
  mprotect(a.pages + pages.first * page_bytes, (pages.end - pages.first) * page_bytes,
           writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

bool memory::is_open(int device) const {
  const auto index = static_cast<std::size_t>(device);
  return index < open_.size() && open_[index] > 0;
}

void memory::open(int device) {
  const auto index = static_cast<std::size_t>(device);
  if (open_.size() <= index) open_.resize(index + 1);
  if (open_[index]++ > 0) return;
  for (const auto& [last, a] : live_) {
    if (a.what == kind::device && a.device == device) {
      mprotect(a.address, rounded_up(a.bytes), PROT_READ | PROT_WRITE);
    }
  }
}

void memory::close(int device) {
  if (--open_[static_cast<std::size_t>(device)] > 0) return;
  for (const auto& [last, a] : live_) {
    if (a.what == kind::device && a.device == device) mprotect(a.address, rounded_up(a.bytes), PROT_NONE);
  }
}

std::size_t memory::count(kind what) const {
  return static_cast<std::size_t>(
      std::count_if(live_.begin(), live_.end(), [&](const auto& entry) { return entry.second.what == what; }));
}

std::vector<memory::allocation> memory::all(kind what) const {
  std::vector<allocation> result;
  for (const auto& [last, a] : live_)
    if (a.what == what) result.push_back(a);
  return result;
}

std::size_t memory::bytes(kind what, int device) const {
  std::size_t sum = 0;
  for (const auto& [last, a] : live_) {
    if (a.what == what && (what != kind::device || a.device == device)) sum += a.bytes;
  }
  return sum;
}

}  // namespace fake_cuda::detail
