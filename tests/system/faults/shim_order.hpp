// Which call is to fail, and whether a call is made by our own code: the half of shim.cpp that decides.
//
//   if (fails("read", __builtin_return_address(0))) return errno = wanted.error, -1;
//
// shim.cpp says what the environment says. Only shim.cpp includes this.
#pragma once

#include "shim_state.hpp"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace {

struct code_range {
  std::uintptr_t base = 0, begin = 0, end = 0;
  bool holds(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
};

enum class failure { with_errno, half, few, end, clock_forward, clock_ahead, clock_back };

struct order {
  std::string_view call{};
  failure how = failure::with_errno;
  int error = EIO;
  std::uint64_t nth = 0;
  bool sticky = false;
};

code_range program, shim, cpp_library, unwinder;
order wanted;
fault_state* state = nullptr;
std::atomic<bool> armed{false};
thread_local bool spared = false;

bool has_name(const char* path, std::string_view name) {
  return std::string_view(path).find(name) != std::string_view::npos;
}

int look_at_object(dl_phdr_info* object, std::size_t, void* number) {
  code_range range;
  range.base = object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    range.begin = object->dlpi_addr + header.p_vaddr;
    range.end = range.begin + header.p_memsz;
  }
  if ((*static_cast<int*>(number))++ == 0) program = range;
  else if (range.holds(reinterpret_cast<std::uintptr_t>(&look_at_object))) shim = range;
  else if (has_name(object->dlpi_name, "libstdc++")) cpp_library = range;
  else if (has_name(object->dlpi_name, "libgcc_s")) unwinder = range;
  return 0;
}

int errno_named(std::string_view name) {
  const std::pair<const char*, int> all[] = {
      {"EIO", EIO},       {"EINTR", EINTR},   {"EAGAIN", EAGAIN}, {"ESTALE", ESTALE}, {"ENOENT", ENOENT},
      {"EACCES", EACCES}, {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EROFS", EROFS},
      {"EXDEV", EXDEV},   {"EDQUOT", EDQUOT}, {"EPIPE", EPIPE}};
  for (const auto& [known, number] : all)
    if (name == known) return number;
  std::fprintf(stderr, "shim: unknown FAULTS_KIND\n");
  std::_Exit(99);
}

void read_order() {
  const char *call = std::getenv("FAULTS_CALL"), *kind = std::getenv("FAULTS_KIND"), *nth = std::getenv("FAULTS_NTH"),
             *sticky = std::getenv("FAULTS_STICKY"), *file = std::getenv("FAULTS_STATE");
  if (!call || !kind || !nth || !file) return;
  const std::string_view how = kind;
  wanted.call = call;
  wanted.nth = std::strtoull(nth, nullptr, 10);
  wanted.sticky = sticky && *sticky == '1';
  if (how == "short") wanted.how = failure::half;
  else if (how == "tiny") wanted.how = failure::few;
  else if (how == "end") wanted.how = failure::end;
  else if (how == "forward") wanted.how = failure::clock_forward;
  else if (how == "ahead") wanted.how = failure::clock_ahead;
  else if (how == "back") wanted.how = failure::clock_back;
  else wanted.error = errno_named(how);
  const int opened = ::open(file, O_RDWR | O_CLOEXEC);
  void* const at = ::mmap(nullptr, sizeof(fault_state), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  ::close(opened);
  if (at != MAP_FAILED) state = static_cast<fault_state*>(at);
}

struct walk {
  bool find_caller = false, ours = false;
  std::uint64_t frames[fault_state::max_frames];
  std::size_t count = 0;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* data) {
  auto& w = *static_cast<walk*>(data);
  const std::uintptr_t at = _Unwind_GetIP(context) - 1;
  if (shim.holds(at) || unwinder.holds(at)) return _URC_NO_REASON;
  if (w.find_caller) {
    if (cpp_library.holds(at)) return _URC_NO_REASON;
    w.ours = program.holds(at);
    return _URC_END_OF_STACK;
  }
  if (program.holds(at)) w.frames[w.count++] = at - program.base;
  return w.count == fault_state::max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool is_ours(void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller) - 1;
  if (program.holds(at)) return true;
  if (!cpp_library.holds(at)) return false;
  walk w;
  w.find_caller = true;
  _Unwind_Backtrace(look_at_frame, &w);
  return w.ours;
}

void note_place() {
  walk w;
  _Unwind_Backtrace(look_at_frame, &w);
  std::copy_n(w.frames, w.count, state->frames);
  state->frame_count = w.count;
}

/// Returns whether this call is to fail.
bool fails(std::string_view call, void* caller) {
  if (!armed.load(std::memory_order_relaxed) || spared || call != wanted.call || !is_ours(caller)) return false;
  const std::uint64_t number = state->calls.fetch_add(1) + 1;
  if (number != wanted.nth && !(wanted.sticky && number > wanted.nth)) return false;
  spared = true;
  if (state->fired.fetch_add(1) == 0) note_place();
  spared = false;
  return true;
}

struct start {
  start() {
    int number = 0;
    ::dl_iterate_phdr(look_at_object, &number);
    read_order();
    walk w;
    w.find_caller = true;
    _Unwind_Backtrace(look_at_frame, &w);   // what the unwinder loads, it loads now
  }
} const started;

}  // namespace
