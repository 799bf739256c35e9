// A third of the compiled library, which is compiled.cpp: c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
#include <millrace/compiled/pictures.hpp>
