// A user's program of few headers that calls each library that the headers call. It costs a fifth of consumer.cpp's
// compile time, and tests how a build finds the headers and the libraries.
#include <millrace/adapt/tbb.hpp>
#include <millrace/image/jpeg/jpeg_encoder.hpp>
#include <millrace/io/tar/read/archive.hpp>
#include <millrace/io/tar/read/gzip_inflater.hpp>

#include <cstdio>

namespace mr = millrace;

int main() {
  tbb::task_arena arena(1);
  const auto executor = mr::tbb_executor(arena);
  const auto archive = mr::detail::open_archive_reader();
  const mr::detail::gzip_inflater inflater;
  const std::size_t bytes = mr::encode_jpeg(mr::image({8, 8, 3})).size();
  std::printf("millrace %d.%d: %zu\n", MILLRACE_VERSION_MAJOR, MILLRACE_VERSION_MINOR, bytes);
  return executor && archive && inflater.reason().empty() && bytes > 100 ? 0 : 1;
}
