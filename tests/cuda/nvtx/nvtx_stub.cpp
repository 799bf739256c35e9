// A profiler for tests: records every call that it receives through NVTX's tool interface.
//
//   NVTX_INJECTION64_PATH=nvtx_stub.so program
//   nvtx_stub_log()                  // "push millrace decode\npop millrace\nthread millrace-read\n..."
#include <nvtx3/nvToolsExt.h>

#include <cstring>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::string* all = new std::string;   // never destroyed, because calls may arrive at the end of the process
std::string* domain_name = new std::string;
nvtxRangeId_t last_id = 0;
int depth = 0;

void note(const std::string& line) {
  const std::lock_guard lock(mutex);
  *all += line + "\n";
}

std::string text_of(const nvtxEventAttributes_t* what) {
  return what->messageType == NVTX_MESSAGE_TYPE_ASCII && what->version == NVTX_VERSION ? what->message.ascii : "?";
}
std::string named(nvtxDomainHandle_t domain) {
  return domain == reinterpret_cast<nvtxDomainHandle_t>(domain_name) ? " " + *domain_name : " another domain";
}

nvtxDomainHandle_t create(const char* name) {
  *domain_name = name;
  return reinterpret_cast<nvtxDomainHandle_t>(domain_name);
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* what) {
  note("push" + named(domain) + " " + text_of(what));
  return ++depth;
}
int pop(nvtxDomainHandle_t domain) {
  note("pop" + named(domain));
  return --depth;
}
nvtxRangeId_t start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* what) {
  nvtxRangeId_t id;
  {
    const std::lock_guard lock(mutex);
    id = ++last_id;
  }
  note("start " + std::to_string(id) + named(domain) + " " + text_of(what));
  return id;
}
void end(nvtxDomainHandle_t domain, nvtxRangeId_t id) { note("end " + std::to_string(id) + named(domain)); }
void name_thread(std::uint32_t, const char* name) { note("thread " + std::string(name)); }

/// NVTX's tables contain pointers to its function pointers, by number.
template <class Function>
bool replace(NvtxFunctionTable table, unsigned number, Function* by) {
  *table[number] = reinterpret_cast<NvtxFunctionPointer>(by);
  return true;
}

}  // namespace

extern "C" const char* nvtx_stub_log() {
  const std::lock_guard lock(mutex);
  return all->c_str();
}

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable core = nullptr, domains = nullptr;
  unsigned size = 0;
  if (!callbacks || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) == 0 ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &domains, &size) == 0)
    return 0;
  replace(core, NVTX_CBID_CORE_NameOsThreadA, name_thread);
  replace(domains, NVTX_CBID_CORE2_DomainCreateA, create);
  replace(domains, NVTX_CBID_CORE2_DomainRangePushEx, push);
  replace(domains, NVTX_CBID_CORE2_DomainRangePop, pop);
  replace(domains, NVTX_CBID_CORE2_DomainRangeStartEx, start);
  replace(domains, NVTX_CBID_CORE2_DomainRangeEnd, end);
  return 1;
}
