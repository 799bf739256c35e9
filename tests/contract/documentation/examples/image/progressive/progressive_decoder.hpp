#include <millrace/item/scratch.hpp>
void use(const mr::detail::jpeg_planes& planes);
void by_libjpeg(const mr::detail::jpeg_planes_request& ask, mr::detail::jpeg_refusal why);
void example(mr::scratch& scratch, const mr::detail::jpeg_planes_request& request) {
EXAMPLE
}
