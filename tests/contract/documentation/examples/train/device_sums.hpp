#include <millrace/train/metrics.hpp>
EXAMPLE
