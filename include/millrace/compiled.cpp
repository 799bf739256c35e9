// The compiled library: c++ -std=c++20 -O2 -DMILLRACE_COMPILED -c millrace/compiled.cpp
#include <millrace/src.hpp>
