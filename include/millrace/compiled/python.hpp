// Contains the definitions for adapt/python.hpp and the headers of adapt/python. Requires -DMILLRACE_COMPILED.
//
//   #include <millrace/compiled/python.hpp>      // c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
//
// python.cpp, an optional part of the compiled library, includes this header. If Python.h is missing, the library is
// built without this part.
#pragma once

#include <millrace/base/version.hpp>

#ifndef MILLRACE_COMPILED
#error "millrace/compiled/python.hpp is for programs that are compiled with -DMILLRACE_COMPILED"
#endif

#include <millrace/adapt/python/impl/loader.inl>
