// Replaces functions of the C library (LD_PRELOAD), so that the Nth call of one function fails.
//
//   FAULTS_CALL=read FAULTS_KIND=EIO FAULTS_NTH=3 FAULTS_STICKY=0 FAULTS_STATE=file LD_PRELOAD=./shim.so subject ...
//
// FAULTS_CALL: open read write sync rename map cut close stat folder lock unlink alloc thread clock.
// FAULTS_KIND: the name of an errno; of reads and writes also `short` (half of it), `tiny` (at most 7 bytes) and `end`
// (a read of 0 bytes); of the clock `forward` (the steady clock jumps by an hour), `ahead` and `back` (the wall clock
// jumps by a day). FAULTS_STICKY=1: each later call fails, too.
// A call counts if it happens after faults_arm() and originates in our own code: in the main executable, or in the C++
// library on its behalf. Calls that oneTBB, libjpeg, libarchive, zlib and the C library issue for themselves do not
// count, nor does the memory of exceptions, for which the C++ library has a reserve. Clocks jump for all callers.
// faults_threads() counts the running threads that our own code started.
// Threads: any. faults_spare(true) exempts the calling thread, until faults_spare(false).
#include "shim_order.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include <cstdarg>
#include <new>

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

template <class Function>
Function* real(const char* name) {
  void* const function = ::dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function*>(function);
}

/// Performs the call, or returns -1 with the errno of the injection.
template <class Call>
auto attempt(std::string_view name, void* caller, const Call& call) -> decltype(call()) {
  if (!fails(name, caller)) return call();
  errno = injection.error;
  return decltype(call())(-1);
}

/// Moves bytes. The argument of `call` limits their number.
template <class Call>
ssize_t move_bytes(std::string_view name, void* caller, std::size_t bytes, const Call& call) {
  if (!fails(name, caller)) return call(bytes);
  if (injection.how == failure::half) return call(bytes > 1 ? bytes / 2 : bytes);
  if (injection.how == failure::few) return call(std::min<std::size_t>(bytes, 7));
  if (injection.how == failure::end) return 0;
  errno = injection.error;
  return -1;
}

/// The same for scattered bytes: a short move fills the first parts, or a piece of the first.
template <class Call>
ssize_t move_parts(void* caller, const iovec* to, int count, const Call& call) {
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += to[i].iov_len;
  return move_bytes("read", caller, bytes, [&](std::size_t n) {
    int complete = 0;
    for (; complete < count && n >= to[complete].iov_len; ++complete) n -= to[complete].iov_len;
    const iovec piece{to->iov_base, n};
    return complete > 0 ? call(to, complete) : call(&piece, 1);
  });
}

std::int64_t jump_s(clockid_t clock) {
  if (!state || state->fired.load(std::memory_order_relaxed) == 0 || injection.call != "clock") return 0;
  if (clock == CLOCK_MONOTONIC) return injection.how == failure::clock_forward ? 3'600 : 0;
  if (clock != CLOCK_REALTIME) return 0;
  return injection.how == failure::clock_ahead ? 86'400 : injection.how == failure::clock_back ? -86'400 : 0;
}

void* allocate(std::size_t bytes, std::size_t alignment, void* caller) {
  if (fails("alloc", caller)) throw std::bad_alloc();
  void* const memory = alignment == 0 ? __libc_malloc(bytes == 0 ? 1 : bytes) : __libc_memalign(alignment, bytes);
  if (!memory) throw std::bad_alloc();
  return memory;
}

/// A thread that our own code started. Its name does not identify it: oneTBB's threads inherit our names.
struct counted_thread {
  void* (*run)(void*);
  void* argument;
};
std::atomic<int> live_threads{0};

void* run_counted(void* started) {
  const counted_thread task = *static_cast<counted_thread*>(started);
  std::free(started);
  void* const result = task.run(task.argument);
  --live_threads;
  return result;
}

}  // namespace

extern "C" {

void faults_arm() { armed = state != nullptr; }
void faults_disarm() { armed = false; }
void faults_spare(bool on) { spared = on; }
int faults_threads() { return live_threads; }

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  static const auto next = real<int(const char*, int, ...)>("open");
  return attempt("open", __builtin_return_address(0), [&] { return next(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  static const auto next = real<int(const char*, int, ...)>("open64");
  return attempt("open", __builtin_return_address(0), [&] { return next(path, flags, mode); });
}
int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  static const auto next = real<int(int, const char*, int, ...)>("openat");
  return attempt("open", __builtin_return_address(0), [&] { return next(folder, path, flags, mode); });
}
FILE* fopen(const char* path, const char* mode) {
  static const auto next = real<FILE*(const char*, const char*)>("fopen");
  if (!fails("open", __builtin_return_address(0))) return next(path, mode);
  errno = injection.error;
  return nullptr;
}

ssize_t read(int file, void* to, std::size_t bytes) {
  static const auto next = real<ssize_t(int, void*, std::size_t)>("read");
  return move_bytes("read", __builtin_return_address(0), bytes, [&](std::size_t n) { return next(file, to, n); });
}
ssize_t pread(int file, void* to, std::size_t bytes, off_t at) {
  static const auto next = real<ssize_t(int, void*, std::size_t, off_t)>("pread");
  return move_bytes("read", __builtin_return_address(0), bytes, [&](std::size_t n) { return next(file, to, n, at); });
}
ssize_t pread64(int file, void* to, std::size_t bytes, off64_t at) {
  static const auto next = real<ssize_t(int, void*, std::size_t, off64_t)>("pread64");
  return move_bytes("read", __builtin_return_address(0), bytes, [&](std::size_t n) { return next(file, to, n, at); });
}
ssize_t preadv(int file, const iovec* to, int count, off_t at) {
  static const auto next = real<ssize_t(int, const iovec*, int, off_t)>("preadv");
  return move_parts(__builtin_return_address(0), to, count,
                    [&](const iovec* parts, int n) { return next(file, parts, n, at); });
}
ssize_t preadv64(int file, const iovec* to, int count, off64_t at) {
  static const auto next = real<ssize_t(int, const iovec*, int, off64_t)>("preadv64");
  return move_parts(__builtin_return_address(0), to, count,
                    [&](const iovec* parts, int n) { return next(file, parts, n, at); });
}

ssize_t write(int file, const void* from, std::size_t bytes) {
  static const auto next = real<ssize_t(int, const void*, std::size_t)>("write");
  return move_bytes("write", __builtin_return_address(0), bytes, [&](std::size_t n) { return next(file, from, n); });
}
ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t at) {
  static const auto next = real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  return move_bytes("write", __builtin_return_address(0), bytes,
                    [&](std::size_t n) { return next(file, from, n, at); });
}
ssize_t writev(int file, const iovec* from, int count) {
  static const auto next = real<ssize_t(int, const iovec*, int)>("writev");
  return attempt("write", __builtin_return_address(0), [&] { return next(file, from, count); });
}

int fsync(int file) {
  static const auto next = real<int(int)>("fsync");
  return attempt("sync", __builtin_return_address(0), [&] { return next(file); });
}
int fdatasync(int file) {
  static const auto next = real<int(int)>("fdatasync");
  return attempt("sync", __builtin_return_address(0), [&] { return next(file); });
}
int rename(const char* from, const char* to) noexcept {
  static const auto next = real<int(const char*, const char*)>("rename");
  return attempt("rename", __builtin_return_address(0), [&] { return next(from, to); });
}
int unlink(const char* path) noexcept {
  static const auto next = real<int(const char*)>("unlink");
  return attempt("unlink", __builtin_return_address(0), [&] { return next(path); });
}
int ftruncate(int file, off_t bytes) noexcept {
  static const auto next = real<int(int, off_t)>("ftruncate");
  return attempt("cut", __builtin_return_address(0), [&] { return next(file, bytes); });
}
/// The descriptor is closed either way, as on Linux.
int close(int file) {
  static const auto next = real<int(int)>("close");
  const bool failing = fails("close", __builtin_return_address(0));
  const int result = next(file);
  if (failing) errno = injection.error;
  return failing ? -1 : result;
}

int stat(const char* path, struct stat* to) noexcept {
  static const auto next = real<int(const char*, struct stat*)>("stat");
  return attempt("stat", __builtin_return_address(0), [&] { return next(path, to); });
}
int fstat(int file, struct stat* to) noexcept {
  static const auto next = real<int(int, struct stat*)>("fstat");
  return attempt("stat", __builtin_return_address(0), [&] { return next(file, to); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int(const char*, mode_t)>("mkdir");
  return attempt("folder", __builtin_return_address(0), [&] { return next(path, mode); });
}
DIR* opendir(const char* path) {
  static const auto next = real<DIR*(const char*)>("opendir");
  if (!fails("folder", __builtin_return_address(0))) return next(path);
  errno = injection.error;
  return nullptr;
}
int flock(int file, int how) noexcept {
  static const auto next = real<int(int, int)>("flock");
  return attempt("lock", __builtin_return_address(0), [&] { return next(file, how); });
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static const auto next = real<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  if (!fails("map", __builtin_return_address(0))) return next(at, bytes, protection, flags, file, offset);
  errno = injection.error;
  return MAP_FAILED;
}
void* mmap64(void* at, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  static const auto next = real<void*(void*, std::size_t, int, int, int, off64_t)>("mmap64");
  if (!fails("map", __builtin_return_address(0))) return next(at, bytes, protection, flags, file, offset);
  errno = injection.error;
  return MAP_FAILED;
}

void* malloc(std::size_t bytes) {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  if (program.contains(caller) && fails("alloc", __builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  if (program.contains(caller) && fails("alloc", __builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - 1;
  if (program.contains(caller) && fails("alloc", __builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return __libc_realloc(old, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
  if (fails("alloc", __builtin_return_address(0))) return ENOMEM;
  *to = __libc_memalign(alignment, bytes);
  return *to ? 0 : ENOMEM;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (fails("alloc", __builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return __libc_memalign(alignment, bytes);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  static const auto next = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  if (fails("thread", __builtin_return_address(0))) return injection.error;
  if (!is_ours(__builtin_return_address(0))) return next(thread, attributes, run, argument);
  auto* const task = new (__libc_malloc(sizeof(counted_thread))) counted_thread{run, argument};
  ++live_threads;
  const int error = next(thread, attributes, run_counted, task);
  if (error == 0) return 0;
  --live_threads;
  std::free(task);
  return error;
}

int clock_gettime(clockid_t clock, timespec* to) noexcept {
  static const auto next = real<int(clockid_t, timespec*)>("clock_gettime");
  static_cast<void>(fails("clock", __builtin_return_address(0)));
  const int result = next(clock, to);
  to->tv_sec += jump_s(clock);
  return result;
}
int pthread_cond_clockwait(pthread_cond_t* news, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static const auto next =
      real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  timespec kernels = *until;
  kernels.tv_sec -= jump_s(clock);
  return next(news, mutex, clock, &kernels);
}

}  // extern "C"

// The C++ library also allocates through these, for strings and threads.
void* operator new(std::size_t bytes) { return allocate(bytes, 0, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails("alloc", __builtin_return_address(0)) ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails("alloc", __builtin_return_address(0)) ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
