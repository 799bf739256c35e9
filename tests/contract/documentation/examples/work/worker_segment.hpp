#include <millrace/work/executor.hpp>

mr::detail::thread_executor pool(1);

EXAMPLE
