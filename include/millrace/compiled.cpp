// The compiled library: c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c millrace/compiled.cpp
#include <millrace/src.hpp>
