#include <millrace/train/log.hpp>
void logging() {
EXAMPLE
}
