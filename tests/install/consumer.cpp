// What somebody else's program needs of an installed Millrace: its headers, and the libraries that they call.
#include <millrace/base/random.hpp>
#include <millrace/base/version.hpp>

#include <archive.h>
#include <tbb/task_arena.h>

#include <cstdio>

#include <jpeglib.h>

namespace mr = millrace;

int main() {
  mr::draw random({.seed = 7});
  jpeg_error_mgr handler;
  std::printf("millrace %d.%d: %d, %d threads, libjpeg %s, %s\n", MILLRACE_VERSION_MAJOR, MILLRACE_VERSION_MINOR,
              static_cast<int>(random.below(10)), tbb::this_task_arena::max_concurrency(),
              jpeg_std_error(&handler) == &handler ? "there" : "odd", archive_version_string());
}
