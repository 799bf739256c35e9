#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
void show(mr::batch_of<&example::pixels, &example::label>& b, mr::tensor_view<const float, 4> numbers,
          const mr::normalize_options& options, mr::log& out, std::uint64_t n) {
EXAMPLE
}
