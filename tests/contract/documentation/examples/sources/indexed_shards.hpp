#include <millrace/millrace.hpp>
struct example { mr::picture pixels; std::int32_t label; };
using batch = mr::batch_of<&example::pixels, &example::label>;
example prepare(const mr::record& r, mr::rng& rng);
void step(batch& b);
void write(const std::string& text);
void training(const std::string& text, bool save_now) {
EXAMPLE
}
