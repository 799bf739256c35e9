// error: this name needs #include <millrace/shards.hpp>
#include <millrace/millrace.hpp>
#if !MISTAKE
#include <millrace/shards.hpp>
#endif

namespace mr = millrace;

auto source() { return mr::indexed_shards("a-{0..9}.tar", {.seed = 7}); }   // wrong here
