// The module of streams.py: a flow on the fake CUDA runtime, and functions that act as a library with streams.
#include "../../cuda/fake/fake_cuda.cpp"

#include <millrace/adapt/python.hpp>
#include <millrace/device/cuda.hpp>
#include <millrace/sources/from.hpp>
#include <millrace/stages/batch.hpp>
#include <millrace/stages/map.hpp>
#include <millrace/stages/to_device.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

namespace mr = millrace;

namespace {

struct options {
  std::uint64_t stream = 0;   // the stream of to_device()
  std::size_t slots = 1;
};

struct example {
  std::array<std::int32_t, 4> values;
  std::uint16_t label;
};

auto numbers(const options& o) {
  return mr::from(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) |
         mr::map([](std::int32_t n) {
           return example{.values = {n, n + 1, n + 2, n + 3}, .label = static_cast<std::uint16_t>(60'000 + n)};
         }) |
         mr::batch<&example::values, &example::label>({.size = 4}) |
         mr::to_device({.device = mr::cuda_device(0), .stream = reinterpret_cast<CUstream_st*>(o.stream),
                        .slots = o.slots});
}

std::map<std::uint64_t, std::shared_ptr<std::atomic<bool>>> blocks;   // by stream

cudaStream_t stream_of(PyObject* number) { return reinterpret_cast<cudaStream_t>(PyLong_AsUnsignedLongLong(number)); }
PyObject* answer(cudaError_t result, PyObject* value = nullptr) {
  if (result == cudaSuccess) return value ? value : Py_NewRef(Py_None);
  Py_XDECREF(value);
  PyErr_SetString(PyExc_RuntimeError, cudaGetErrorName(result));
  return nullptr;
}

/// reset(): a new device, whose work runs on background threads.
PyObject* reset(PyObject*, PyObject*) {
  fake_cuda::reset({.background_threads = 4});
  return Py_NewRef(Py_None);
}
/// stream(): creates a stream.
PyObject* create_stream(PyObject*, PyObject*) {
  cudaStream_t created = nullptr;
  const cudaError_t result = cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking);
  return answer(result, PyLong_FromUnsignedLongLong(reinterpret_cast<std::uintptr_t>(created)));
}
/// block(stream): later work in the stream waits for unblock(stream).
PyObject* block(PyObject*, PyObject* number) {
  auto& open = blocks[PyLong_AsUnsignedLongLong(number)];
  open = std::make_shared<std::atomic<bool>>(false);
  return answer(cudaLaunchHostFunc(
      stream_of(number),
      [](void* data) {
        while (!*static_cast<std::atomic<bool>*>(data)) std::this_thread::sleep_for(std::chrono::microseconds(200));
      },
      open.get()));
}
PyObject* unblock(PyObject*, PyObject* number) {
  blocks.at(PyLong_AsUnsignedLongLong(number))->store(true);
  return Py_NewRef(Py_None);
}
/// is_done(stream): whether all its work has run.
PyObject* is_done(PyObject*, PyObject* number) {
  const cudaError_t result = cudaStreamQuery(stream_of(number));
  return result == cudaErrorNotReady ? PyBool_FromLong(0) : answer(result, PyBool_FromLong(1));
}
/// read(address, bytes, stream): the bytes, as later work in the stream sees them.
PyObject* read(PyObject*, PyObject* args) {
  unsigned long long address = 0, stream = 0;
  Py_ssize_t bytes = 0;
  if (!PyArg_ParseTuple(args, "KnK", &address, &bytes, &stream)) return nullptr;
  std::string copy(static_cast<std::size_t>(bytes), '\0');
  cudaError_t result = cudaMemcpyAsync(copy.data(), reinterpret_cast<const void*>(address), copy.size(),
                                       cudaMemcpyDeviceToHost, reinterpret_cast<cudaStream_t>(stream));
  if (result == cudaSuccess) result = cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream));
  return answer(result, PyBytes_FromStringAndSize(copy.data(), bytes));
}
/// problems(): the violations that the runtime found, and the number of live device allocations.
PyObject* problems(PyObject*, PyObject*) {
  std::string text;
  for (const std::string& violation : fake_cuda::violations()) text += violation + "\n";
  return Py_BuildValue("sn", text.c_str(), static_cast<Py_ssize_t>(fake_cuda::live().device_allocations));
}

}  // namespace

PyMODINIT_FUNC PyInit_streams() {
  using mr::python::loader;
  static PyMethodDef functions[] = {{"reset", reset, METH_NOARGS, nullptr},
                                    {"stream", create_stream, METH_NOARGS, nullptr},
                                    {"block", block, METH_O, nullptr},
                                    {"unblock", unblock, METH_O, nullptr},
                                    {"is_done", is_done, METH_O, nullptr},
                                    {"read", read, METH_VARARGS, nullptr},
                                    {"problems", problems, METH_NOARGS, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};
  PyObject* const module = mr::python::module("streams", loader<&options::stream, &options::slots>("numbers", numbers));
  if (module) PyModule_AddFunctions(module, functions);
  return module;
}
