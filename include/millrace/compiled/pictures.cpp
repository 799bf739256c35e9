// One of three parts of the compiled library, millrace-compiled: c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
#include <millrace/compiled/pictures.hpp>
