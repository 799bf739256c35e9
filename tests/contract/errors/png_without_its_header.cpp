// error: this name needs #include <millrace/pictures.hpp>
#include <millrace/millrace.hpp>
#if !MISTAKE
#include <millrace/pictures.hpp>
#endif

namespace mr = millrace;

mr::picture of(const mr::record& r) { return mr::png(r["png"]).resize(8, 8); }   // wrong here
