#include <millrace/millrace.hpp>

// case: indexed_shards_without_its_header
// error: this name needs #include <millrace/shards.hpp>
#if !MISTAKE
#include <millrace/shards.hpp>
#endif

namespace mr = millrace;

auto source() { return mr::indexed_shards("a-{0..9}.tar", {.seed = 7}); }   // wrong here

// case: png_without_its_header
// error: this name needs #include <millrace/pictures.hpp>
#if !MISTAKE
#include <millrace/pictures.hpp>
#endif

namespace mr = millrace;

mr::picture of(const mr::record& r) { return mr::png(r["png"]).resize(8, 8); }   // wrong here
