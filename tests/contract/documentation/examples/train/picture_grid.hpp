#include <millrace/millrace.hpp>
#include <millrace/item/ragged.hpp>
struct example { mr::picture pixels; mr::label_map<> mask; mr::ragged<float, 2> boxes; };
void show(mr::batch_of<&example::pixels, &example::mask, &example::boxes>& b, mr::tensor_view<const float, 4> numbers,
          const mr::normalize_options& options, mr::log& out, std::uint64_t n) {
EXAMPLE
}
