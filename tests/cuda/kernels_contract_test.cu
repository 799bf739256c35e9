// The contract of kernels and metrics, compiled by nvcc for a GPU; without one it is skipped.
//
//   nvcc -std=c++20 -arch=native -DMILLRACE_CUDA=1 -I../../include kernels_contract_test.cu gpu_main.cpp -o gpu_kernels
#include "kernels_contract_test.cpp"
