// ---- jpeg_format.hpp
#include <millrace/image/picture/picture.hpp>
void example(const mr::bytes& file, const mr::jpeg_header& header) {
EXAMPLE
}

// ---- picture_format.hpp
#include <millrace/image/render/jpeg_format.hpp>
#include <millrace/image/picture/picture.hpp>
#include <millrace/image/render/picture_job.hpp>

namespace {

void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header,
          const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE
}

}  // namespace

// ---- picture_group.hpp
#include <millrace/image/picture/picture.hpp>

#include <vector>

std::span<std::uint8_t> row_of(const mr::picture& p);

void example(mr::scratch& scratch, const std::vector<mr::picture>& views) {
EXAMPLE
}

// ---- picture_job.hpp
#include <millrace/image/render/jpeg_format.hpp>
void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header, std::byte* row,
          mr::scratch& memory) {
EXAMPLE
}

// ---- picture_renderer.hpp
#include <millrace/image/render/jpeg_format.hpp>
void example(const mr::bytes& file, const mr::jpeg_options& o, const mr::jpeg_header& h,
             const mr::detail::resize_plan& plan, const mr::detail::pixel_target& t, mr::scratch& scratch) {
EXAMPLE
}

// ---- pixel_rows.hpp
#include <cstdint>
void fill(std::span<std::uint8_t> rgbx, std::size_t row, std::size_t left);
void example(const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE 1
}
void example(std::span<const mr::detail::picture_job> jobs, mr::detail::row_decoder& decoder, mr::scratch& memory) {
EXAMPLE 2
}

// ---- render_counts.hpp
void example(std::span<const mr::detail::picture_job> jobs, std::span<const mr::detail::own_result> results,
             mr::scratch& scratch) {
EXAMPLE
}

// ---- row_finisher.hpp
#include <millrace/image/render/picture_renderer.hpp>
void example(const mr::detail::picture_job& job, const mr::detail::jpeg_planes& planes,
             mr::detail::plane_resizer& resizer, mr::scratch& memory) {
EXAMPLE
}

// ---- shared_requests.hpp
#include <millrace/image/jpeg/baseline/jpeg_plane_decoder.hpp>
#include <millrace/image/render/picture_job.hpp>
void render(std::size_t job, const mr::detail::jpeg_planes& planes);
void example(std::span<const mr::detail::picture_job> jobs, const mr::detail::jpeg_planes_request& request,
             mr::detail::jpeg_plane_decoder& decoder) {
EXAMPLE
}
