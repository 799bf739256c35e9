// error: (wrong number of|too few) template arguments
// shows: millrace: #include <millrace/item/tensor/ragged.hpp>
// errors: 2
#include <millrace/millrace.hpp>
#if !MISTAKE
#include <millrace/item/tensor/ragged.hpp>
#endif

namespace mr = millrace;

struct example {
  mr::ragged<int> words;   // wrong here
};
