// error: a field is bytes, not a std::string: write mr::integer<int>\(field\)
#include <millrace/run/session.hpp>
#include <millrace/item/tensor/scalar.hpp>
#include <millrace/sources/shards.hpp>

#include <string>

namespace mr = millrace;

int label_of(const mr::record& r) {
#if MISTAKE
  return std::stoi(r["cls"]);  // wrong here
#else
  return mr::integer<int>(r["cls"]);
#endif
}
