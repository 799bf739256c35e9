// Defines the functions of the library in compiled mode. In this mode (MILLRACE_COMPILED is set), the other headers
// only declare these functions. Exceptions: compiled/python.hpp defines the functions that need Python.h,
// compiled/stores.hpp those that need libcrypto, and compiled/remote.hpp those that need libcurl.
//
//   #include <millrace/src.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// Include this header in exactly one translation unit, or use the build dependency millrace-compiled, which provides
// these definitions as a compiled library.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/src.hpp is for programs that are compiled with -DMILLRACE_COMPILED; without it the headers define all"
#endif

#include <millrace/compiled/files.hpp>
#include <millrace/compiled/pictures.hpp>
#include <millrace/compiled/runs.hpp>
