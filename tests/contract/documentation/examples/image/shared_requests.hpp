#include <millrace/image/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/picture_job.hpp>
void render(std::size_t job, const mr::detail::jpeg_planes& planes);
void example(std::span<const mr::detail::picture_job> jobs, const mr::detail::jpeg_planes_request& request,
             mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}
