#include <millrace/sources/token_data.hpp>
void use(const mr::packed&);
void example(std::shared_ptr<mr::detail::token_data> data, const mr::detail::exact_order& plan,
             const std::vector<mr::detail::ordered_sample>& wanted) {
EXAMPLE
}
