#include <millrace/image/picture_renderer.hpp>
void example(const mr::detail::picture_job& job, const mr::detail::jpeg_planes& planes,
             mr::detail::plane_resizer& resizer, mr::scratch& memory) {
EXAMPLE
}
