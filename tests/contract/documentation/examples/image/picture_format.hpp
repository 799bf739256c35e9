#include <millrace/image/picture.hpp>
#include <millrace/image/picture_job.hpp>

namespace {

void show(const mr::bytes& file, const mr::jpeg_options& options, const mr::jpeg_header& header,
          const mr::detail::picture_job& job, mr::scratch& memory) {
EXAMPLE
}

}  // namespace
