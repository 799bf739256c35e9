#include <millrace/millrace.hpp>

// case: keys_from_without_its_header
// error: this name needs #include <millrace/shards.hpp>
#if !MISTAKE
#include <millrace/shards.hpp>
#endif

namespace mr = millrace;

auto keys() { return mr::keys_from("bad.txt"); }   // wrong here

// case: png_without_its_header
// error: this name needs #include <millrace/pictures.hpp>
#if !MISTAKE
#include <millrace/pictures.hpp>
#endif

namespace mr = millrace;

mr::picture of(const mr::record& r) { return mr::png(r["png"]).resize(8, 8); }   // wrong here
