#include <millrace/flow/flow.hpp>

EXAMPLE
flow<int> without_stages;
