// The decisions of shim.cpp: which call must fail, and whether a call originates in our own code.
//
//   if (fails("read", __builtin_return_address(0))) return errno = injection.error, -1;
//
// shim.cpp documents the environment variables. Only shim.cpp includes this.
#pragma once

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

/// The state that shim.cpp shares with the driver: a file that both map, which therefore survives a crash.
struct fault_state {
  static constexpr std::size_t max_frames = 24;

  std::atomic<std::uint64_t> calls, fired, frame_count;
  std::uint64_t frames[max_frames];   // addresses in the file of the program, the innermost first
};
static_assert(sizeof(fault_state) == 8 * (3 + fault_state::max_frames), "faults.py reads words");

namespace {

struct code_range {
  std::uintptr_t base = 0, begin = 0, end = 0;
  bool contains(std::uintptr_t address) const noexcept { return address >= begin && address < end; }
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
order injection;
fault_state* state = nullptr;
std::atomic<bool> armed{false};
thread_local bool spared = false;

bool has_name(const char* path, std::string_view name) {
  return std::string_view(path).find(name) != std::string_view::npos;
}

int inspect_object(dl_phdr_info* object, std::size_t, void* number) {
  code_range range;
  range.base = object->dlpi_addr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    range.begin = object->dlpi_addr + header.p_vaddr;
    range.end = range.begin + header.p_memsz;
  }
  if ((*static_cast<int*>(number))++ == 0) program = range;
  else if (range.contains(reinterpret_cast<std::uintptr_t>(&inspect_object))) shim = range;
  else if (has_name(object->dlpi_name, "libstdc++")) cpp_library = range;
  else if (has_name(object->dlpi_name, "libgcc_s")) unwinder = range;
  return 0;
}

int errno_named(std::string_view name) {
  const std::pair<const char*, int> all[] = {
      {"EIO", EIO},       {"EINTR", EINTR},   {"EAGAIN", EAGAIN}, {"ESTALE", ESTALE}, {"ENOENT", ENOENT},
      {"EACCES", EACCES}, {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EROFS", EROFS},
      {"EXDEV", EXDEV},   {"EDQUOT", EDQUOT}, {"EPIPE", EPIPE}};
  for (const auto& [errno_name, number] : all)
    if (name == errno_name) return number;
  std::fprintf(stderr, "shim: unknown FAULTS_KIND\n");
  std::_Exit(99);
}

void read_order() {
  const char *call = std::getenv("FAULTS_CALL"), *kind = std::getenv("FAULTS_KIND"), *nth = std::getenv("FAULTS_NTH"),
             *sticky = std::getenv("FAULTS_STICKY"), *file = std::getenv("FAULTS_STATE");
  if (!call || !kind || !nth || !file) return;
  const std::string_view how = kind;
  injection.call = call;
  injection.nth = std::strtoull(nth, nullptr, 10);
  injection.sticky = sticky && *sticky == '1';
  if (how == "short") injection.how = failure::half;
  else if (how == "tiny") injection.how = failure::few;
  else if (how == "end") injection.how = failure::end;
  else if (how == "forward") injection.how = failure::clock_forward;
  else if (how == "ahead") injection.how = failure::clock_ahead;
  else if (how == "back") injection.how = failure::clock_back;
  else injection.error = errno_named(how);
  const int descriptor = ::open(file, O_RDWR | O_CLOEXEC);
  void* const at = ::mmap(nullptr, sizeof(fault_state), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (at != MAP_FAILED) state = static_cast<fault_state*>(at);
}

struct walk {
  bool find_caller = false, ours = false;
  std::uint64_t frames[fault_state::max_frames];
  std::size_t count = 0;
};

_Unwind_Reason_Code inspect_frame(_Unwind_Context* context, void* data) {
  auto& w = *static_cast<walk*>(data);
  const std::uintptr_t at = _Unwind_GetIP(context) - 1;
  if (shim.contains(at) || unwinder.contains(at)) return _URC_NO_REASON;
  if (w.find_caller) {
    if (cpp_library.contains(at)) return _URC_NO_REASON;
    w.ours = program.contains(at);
    return _URC_END_OF_STACK;
  }
  if (program.contains(at)) w.frames[w.count++] = at - program.base;
  return w.count == fault_state::max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool is_ours(void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller) - 1;
  if (program.contains(at)) return true;
  if (!cpp_library.contains(at)) return false;
  walk w;
  w.find_caller = true;
  _Unwind_Backtrace(inspect_frame, &w);
  return w.ours;
}

void record_frames() {
  walk w;
  _Unwind_Backtrace(inspect_frame, &w);
  std::copy_n(w.frames, w.count, state->frames);
  state->frame_count = w.count;
}

/// Returns whether this call must fail.
bool fails(std::string_view call, void* caller) {
  if (!armed.load(std::memory_order_relaxed) || spared || call != injection.call || !is_ours(caller)) return false;
  const std::uint64_t number = state->calls.fetch_add(1) + 1;
  if (number != injection.nth && !(injection.sticky && number > injection.nth)) return false;
  spared = true;
  if (state->fired.fetch_add(1) == 0) record_frames();
  spared = false;
  return true;
}

struct start {
  start() {
    int number = 0;
    ::dl_iterate_phdr(inspect_object, &number);
    read_order();
    walk w;
    w.find_caller = true;
    _Unwind_Backtrace(inspect_frame, &w);   // loads the unwinder's libraries now
  }
} const started;

}  // namespace
