// The contract of kernels and metrics, compiled by nvcc for a GPU; without one it is skipped.
#include "kernels_contract_test.cpp"
