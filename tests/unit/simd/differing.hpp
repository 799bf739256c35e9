// Defines differing() (differing.inc) in the namespace of each layer, once for all tests that are joined into one file.
#pragma once

#include <cstddef>
#include <cstring>

#include <millrace/simd/words.hpp>

#define MILLRACE_KERNELS "unit/simd/differing.inc"
#include <millrace/simd/for_each_layer.inc>
