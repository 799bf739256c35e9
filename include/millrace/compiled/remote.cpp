// One of two parts of the library millrace-compiled-remote: c++ -std=c++20 -O3 -DMILLRACE_COMPILED -c
#include <millrace/compiled/remote.hpp>
