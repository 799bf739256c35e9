// The part of the compiled library for modules of Python: c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
#include <millrace/compiled/python.hpp>
