#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
using batch = mr::batch_of<&example::pixels, &example::label>;
void step(mr::metrics& m, batch& b, mr::tensor_view<const float, 1> losses, mr::tensor_view<const mr::f16, 2> logits,
          mr::tensor_view<const std::int32_t, 1> labels) {
EXAMPLE
}
