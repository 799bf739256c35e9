#include <millrace/item/ragged.hpp>
#include <millrace/metrics.hpp>
#include <millrace/millrace.hpp>
struct example { mr::picture pixels; mr::label_map<> mask; mr::ragged<float, 2> boxes; };
void show(mr::batch_of<&example::pixels, &example::mask, &example::boxes>& b) {
EXAMPLE
}
