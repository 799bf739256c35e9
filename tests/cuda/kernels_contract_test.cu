// The contract of kernels and metrics, compiled by nvcc for a GPU; without one it is skipped.
//
//   nvcc -std=c++20 -arch=native -DMILLRACE_CUDA=1 -Iinclude tests/cuda/kernels_contract_test.cu tests/cuda/gpu_main.cpp
#include "kernels_contract_test.cpp"
