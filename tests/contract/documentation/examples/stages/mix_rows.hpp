#include <millrace/millrace.hpp>
#include <millrace/mix_rows.hpp>

struct example {
  mr::picture pixels;
  std::int32_t label;
};
example prepare(const mr::record&);
template <class Pixels, class Labels, class Lambda>
void train_step(const Pixels&, const Labels&, const Labels&, const Lambda&);

void show() {
EXAMPLE
}
