#include <millrace/train/log.hpp>
void use(double value);
void logging(mr::log& out, const mr::row& r) {
EXAMPLE
}
