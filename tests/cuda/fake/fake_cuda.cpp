// The fake runtime as one file, which compiles in a third of the time.
#include "capture.cpp"
#include "copies.cpp"
#include "devices.cpp"
#include "errors.cpp"
#include "memory.cpp"
#include "scheduler.cpp"
#include "streams.cpp"
#include "world.cpp"
