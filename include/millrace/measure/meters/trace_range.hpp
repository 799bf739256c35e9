// Provides ranges and thread names for NVIDIA's profilers (NVTX), in the domain "millrace". Has no effect without
// MILLRACE_NVTX.
//
//   const mr::detail::trace_range work("decode");                         // until the end of the scope, on this thread
//   const mr::detail::trace_range copy("h2d", batch);                     // "h2d#412"
//   const mr::detail::trace_range read([&] { return "read/" + name; });   // called only if a profiler is attached
//   mr::detail::trace_span step;
//   step.start("batch", batch);                                           // "batch#412", until end(), in any scope
//   step.end();
//
// If Meson finds CUDA and nvtx3, Millrace's Meson dependencies and the installed pkg-config files for CUDA define
// MILLRACE_NVTX. Names:
// - read/<shard>: an I/O thread reads the shard.
// - map, expand: a worker runs a stage before the last segment. The last segment contains the stages that fill batches.
// - decode: a worker runs the last segment.
// - wait#N: the trainer waits for batch N.
// - batch#N: the time from the delivery of batch N to the trainer's following call of next().
// - h2d#N: the copy of batch N is queued. The profiler shows the copy itself in the row of the stream.
//
// If no profiler is attached, a range only tests a pointer, which costs less than 1 ns. No text is composed and nothing
// is allocated. The nvtx3 library is header-only, loads the profiler specified by NVTX_INJECTION64_PATH, and does not
// call CUDA.
// Errors: none. A range is omitted if its name cannot be composed. Threads: any thread.
#pragma once

#include <millrace/base/machine.hpp>
#include <millrace/base/version.hpp>

#include <cstdint>
#include <string>

#ifdef MILLRACE_NVTX
#include <nvtx3/nvToolsExt.h>

#include <unistd.h>
#endif

namespace millrace { inline namespace MILLRACE_ABI { namespace detail {

#ifdef MILLRACE_NVTX

/// Returns the domain; null if no profiler is attached.
inline nvtxDomainHandle_t trace_domain() noexcept {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("millrace");
  return domain;
}

inline nvtxEventAttributes_t trace_message(const char* name) noexcept {
  nvtxEventAttributes_t a{};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = name;
  return a;
}

/// Marks a range on this thread. The range ends with the scope.
class [[nodiscard]] trace_range {
 public:
  explicit trace_range(const char* name) noexcept {
    if (detail::trace_domain()) push(name);
  }
  trace_range(const char* name, std::uint64_t number) noexcept {
    if (detail::trace_domain()) push_text([=] { return name + ("#" + std::to_string(number)); });
  }
  template <class Name>
    requires requires(const Name& n) { std::string(n()); }
  explicit trace_range(const Name& name) noexcept {
    if (detail::trace_domain()) push_text(name);
  }
  trace_range(const trace_range&) = delete;
  trace_range& operator=(const trace_range&) = delete;
  ~trace_range() {
    if (open_) nvtxDomainRangePop(detail::trace_domain());
  }

 private:
  void push(const char* name) noexcept {
    const nvtxEventAttributes_t message = detail::trace_message(name);
    nvtxDomainRangePushEx(detail::trace_domain(), &message);
    open_ = true;
  }
  template <class Name>
  [[gnu::noinline]] void push_text(const Name& name) noexcept {
    try {
      push(std::string(name()).c_str());
    } catch (...) {
      // Omit the range: a missing range must not stop the work that it marks.
    }
  }

  bool open_ = false;
};

/// Marks a range that is independent of scopes. An object marks one range at a time.
class trace_span {
 public:
  trace_span() = default;
  trace_span(const trace_span&) = delete;
  trace_span& operator=(const trace_span&) = delete;
  ~trace_span() { end(); }

  void start(const char* name, std::uint64_t number) noexcept {
    if (detail::trace_domain()) start_numbered(name, number);
  }
  void end() noexcept {
    if (!open_) return;
    nvtxDomainRangeEnd(detail::trace_domain(), id_);
    open_ = false;
  }

 private:
  [[gnu::noinline]] void start_numbered(const char* name, std::uint64_t number) noexcept {
    end();
    try {
      const std::string text = name + ("#" + std::to_string(number));
      const nvtxEventAttributes_t message = detail::trace_message(text.c_str());
      id_ = nvtxDomainRangeStartEx(detail::trace_domain(), &message);
      open_ = true;
    } catch (...) {
      // Omit the range, as in trace_range.
    }
  }

  nvtxRangeId_t id_ = 0;
  bool open_ = false;
};

/// Sets the name of the calling thread in the system and in profilers.
inline void name_worker_thread(const char* name) noexcept {
  name_this_thread(name);
  if (trace_domain()) nvtxNameOsThreadA(static_cast<std::uint32_t>(::gettid()), name);
}

#else

/// Does nothing, because no profiler can listen.
class [[nodiscard]] trace_range {
 public:
  explicit trace_range(const char*) noexcept {}
  trace_range(const char*, std::uint64_t) noexcept {}
  template <class Name>
    requires requires(const Name& n) { std::string(n()); }
  explicit trace_range(const Name&) noexcept {}
  trace_range(const trace_range&) = delete;
  trace_range& operator=(const trace_range&) = delete;
};

/// Does nothing, because no profiler can listen.
class trace_span {
 public:
  void start(const char*, std::uint64_t) noexcept {}
  void end() noexcept {}
};

inline void name_worker_thread(const char* name) noexcept { name_this_thread(name); }

#endif

}}}   // namespace millrace::detail
