// Every number and every signature of cuda_runtime_api.h as text. Compiled twice, with the fake's header and with
// the toolkit's if it is installed; values_test.cpp compares. LISTED is the name of the function with the list.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

using named_values = std::vector<std::pair<std::string, std::string>>;

named_values LISTED();

named_values LISTED() {
#define NUMBER(entry) {#entry, std::to_string(static_cast<long long>(entry))}
#define HANDLE(entry) {#entry, std::to_string(reinterpret_cast<std::uintptr_t>(entry))}
#define TYPE(entry) {#entry, typeid(entry).name()}
#define SIGNATURE(entry) {#entry, typeid(decltype(entry)).name()}
#define MEMBER(of, entry) {#of "::" #entry, typeid(decltype(of::entry)).name()}
  return {
      NUMBER(cudaSuccess), NUMBER(cudaErrorInvalidValue), NUMBER(cudaErrorMemoryAllocation),
      NUMBER(cudaErrorInitializationError), NUMBER(cudaErrorCudartUnloading),
      NUMBER(cudaErrorInvalidMemcpyDirection), NUMBER(cudaErrorStubLibrary), NUMBER(cudaErrorInsufficientDriver),
      NUMBER(cudaErrorDevicesUnavailable), NUMBER(cudaErrorNoDevice), NUMBER(cudaErrorInvalidDevice),
      NUMBER(cudaErrorNoKernelImageForDevice), NUMBER(cudaErrorECCUncorrectable), NUMBER(cudaErrorOperatingSystem),
      NUMBER(cudaErrorInvalidResourceHandle), NUMBER(cudaErrorIllegalState), NUMBER(cudaErrorNotReady),
      NUMBER(cudaErrorIllegalAddress), NUMBER(cudaErrorLaunchOutOfResources), NUMBER(cudaErrorLaunchTimeout),
      NUMBER(cudaErrorContextIsDestroyed), NUMBER(cudaErrorAssert), NUMBER(cudaErrorHostMemoryAlreadyRegistered),
      NUMBER(cudaErrorHostMemoryNotRegistered), NUMBER(cudaErrorMisalignedAddress), NUMBER(cudaErrorLaunchFailure),
      NUMBER(cudaErrorNotPermitted), NUMBER(cudaErrorNotSupported), NUMBER(cudaErrorSystemNotReady),
      NUMBER(cudaErrorSystemDriverMismatch), NUMBER(cudaErrorStreamCaptureUnsupported),
      NUMBER(cudaErrorStreamCaptureInvalidated), NUMBER(cudaErrorStreamCaptureMerge),
      NUMBER(cudaErrorStreamCaptureUnmatched), NUMBER(cudaErrorStreamCaptureUnjoined),
      NUMBER(cudaErrorStreamCaptureIsolation), NUMBER(cudaErrorStreamCaptureImplicit),
      NUMBER(cudaErrorCapturedEvent), NUMBER(cudaErrorStreamCaptureWrongThread), NUMBER(cudaErrorUnknown),
      NUMBER(cudaMemcpyHostToHost), NUMBER(cudaMemcpyHostToDevice), NUMBER(cudaMemcpyDeviceToHost),
      NUMBER(cudaMemcpyDeviceToDevice), NUMBER(cudaMemcpyDefault), NUMBER(cudaMemoryTypeUnregistered),
      NUMBER(cudaMemoryTypeHost), NUMBER(cudaMemoryTypeDevice), NUMBER(cudaMemoryTypeManaged),
      NUMBER(cudaStreamCaptureModeGlobal), NUMBER(cudaStreamCaptureModeThreadLocal),
      NUMBER(cudaStreamCaptureModeRelaxed), NUMBER(cudaStreamCaptureStatusNone),
      NUMBER(cudaStreamCaptureStatusActive), NUMBER(cudaStreamCaptureStatusInvalidated),
      NUMBER(cudaDevAttrMaxThreadsPerBlock), NUMBER(cudaDevAttrMaxBlockDimX), NUMBER(cudaDevAttrMaxGridDimX),
      NUMBER(cudaDevAttrMaxSharedMemoryPerBlock), NUMBER(cudaDevAttrWarpSize),
      NUMBER(cudaDevAttrMultiProcessorCount), NUMBER(cudaDevAttrIntegrated), NUMBER(cudaDevAttrCanMapHostMemory),
      NUMBER(cudaDevAttrConcurrentKernels), NUMBER(cudaDevAttrPciBusId), NUMBER(cudaDevAttrPciDeviceId),
      NUMBER(cudaDevAttrL2CacheSize), NUMBER(cudaDevAttrMaxThreadsPerMultiProcessor),
      NUMBER(cudaDevAttrAsyncEngineCount), NUMBER(cudaDevAttrUnifiedAddressing), NUMBER(cudaDevAttrPciDomainId),
      NUMBER(cudaDevAttrComputeCapabilityMajor), NUMBER(cudaDevAttrComputeCapabilityMinor),
      NUMBER(cudaDevAttrHostRegisterSupported), NUMBER(cudaDevAttrPageableMemoryAccessUsesHostPageTables),
      NUMBER(cudaEnableDefault),
      NUMBER(cudaErrorUnsupportedPtxVersion), NUMBER(cudaErrorCompatNotSupportedOnDevice),
      NUMBER(cudaErrorIncompatibleDriverContext), NUMBER(cudaErrorDeviceUninitialized),
      NUMBER(cudaDriverEntryPointSuccess), NUMBER(cudaDriverEntryPointSymbolNotFound),
      NUMBER(cudaStreamDefault), NUMBER(cudaStreamNonBlocking),
      NUMBER(cudaEventDefault), NUMBER(cudaEventBlockingSync), NUMBER(cudaEventDisableTiming),
      NUMBER(cudaEventInterprocess), NUMBER(cudaEventWaitDefault), NUMBER(cudaHostAllocDefault),
      NUMBER(cudaHostAllocPortable), NUMBER(cudaHostAllocMapped), NUMBER(cudaHostAllocWriteCombined),
      NUMBER(cudaHostRegisterDefault), NUMBER(cudaHostRegisterPortable), NUMBER(cudaHostRegisterMapped),
      NUMBER(cudaHostRegisterReadOnly),
      HANDLE(cudaStreamLegacy), HANDLE(cudaStreamPerThread),
      TYPE(cudaError_t), TYPE(cudaStream_t), TYPE(cudaEvent_t), TYPE(cudaGraph_t), TYPE(cudaGraphExec_t),
      TYPE(cudaHostFn_t), TYPE(cudaPointerAttributes),
      SIGNATURE(cudaGetLastError), SIGNATURE(cudaPeekAtLastError), SIGNATURE(cudaGetErrorName),
      SIGNATURE(cudaGetErrorString), SIGNATURE(cudaGetDeviceCount), SIGNATURE(cudaGetDevice),
      SIGNATURE(cudaSetDevice), SIGNATURE(cudaDriverGetVersion), SIGNATURE(cudaRuntimeGetVersion),
      SIGNATURE(cudaGetDeviceProperties), SIGNATURE(cudaDeviceGetAttribute), SIGNATURE(cudaDeviceGetPCIBusId),
      SIGNATURE(cudaMemGetInfo), SIGNATURE(cudaDeviceSynchronize), SIGNATURE(cudaGetDriverEntryPointByVersion),
      SIGNATURE(cudaStreamCreateWithFlags),
      SIGNATURE(cudaStreamDestroy), SIGNATURE(cudaStreamQuery), SIGNATURE(cudaStreamSynchronize),
      SIGNATURE(cudaStreamWaitEvent), SIGNATURE(cudaLaunchHostFunc), SIGNATURE(cudaStreamIsCapturing),
      SIGNATURE(cudaStreamBeginCapture), SIGNATURE(cudaStreamEndCapture),
      SIGNATURE(cudaThreadExchangeStreamCaptureMode), SIGNATURE(cudaGraphInstantiate), SIGNATURE(cudaGraphLaunch),
      SIGNATURE(cudaGraphDestroy), SIGNATURE(cudaGraphExecDestroy), SIGNATURE(cudaEventCreateWithFlags),
      SIGNATURE(cudaEventDestroy), SIGNATURE(cudaEventRecord), SIGNATURE(cudaEventQuery),
      SIGNATURE(cudaEventSynchronize), SIGNATURE(cudaEventElapsedTime), SIGNATURE(cudaHostAlloc),
      SIGNATURE(cudaFreeHost), SIGNATURE(cudaHostRegister), SIGNATURE(cudaHostUnregister), SIGNATURE(cudaMalloc),
      SIGNATURE(cudaFree), SIGNATURE(cudaMemcpy), SIGNATURE(cudaMemcpyAsync), SIGNATURE(cudaMemsetAsync),
      SIGNATURE(cudaMemset), SIGNATURE(cudaPointerGetAttributes),
      MEMBER(cudaDeviceProp, name), MEMBER(cudaDeviceProp, totalGlobalMem),
      MEMBER(cudaDeviceProp, sharedMemPerBlock), MEMBER(cudaDeviceProp, warpSize),
      MEMBER(cudaDeviceProp, maxThreadsPerBlock), MEMBER(cudaDeviceProp, major), MEMBER(cudaDeviceProp, minor),
      MEMBER(cudaDeviceProp, multiProcessorCount), MEMBER(cudaDeviceProp, integrated),
      MEMBER(cudaDeviceProp, canMapHostMemory), MEMBER(cudaDeviceProp, concurrentKernels),
      MEMBER(cudaDeviceProp, pciBusID), MEMBER(cudaDeviceProp, pciDeviceID), MEMBER(cudaDeviceProp, pciDomainID),
      MEMBER(cudaDeviceProp, asyncEngineCount), MEMBER(cudaDeviceProp, unifiedAddressing),
      MEMBER(cudaDeviceProp, l2CacheSize), MEMBER(cudaDeviceProp, maxThreadsPerMultiProcessor),
      MEMBER(cudaPointerAttributes, type), MEMBER(cudaPointerAttributes, device),
      MEMBER(cudaPointerAttributes, devicePointer), MEMBER(cudaPointerAttributes, hostPointer),
      MEMBER(cudaPointerAttributes, reserved),
      {"cudaPointerAttributes, bytes", std::to_string(sizeof(cudaPointerAttributes))},
  };
#undef NUMBER
#undef HANDLE
#undef TYPE
#undef SIGNATURE
#undef MEMBER
}
