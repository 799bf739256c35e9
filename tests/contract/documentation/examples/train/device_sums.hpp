#include <millrace/image/label_map.hpp>
#include <millrace/train/metrics.hpp>
EXAMPLE
