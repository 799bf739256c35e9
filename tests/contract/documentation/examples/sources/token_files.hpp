#include <millrace/stages/batch.hpp>
#include <millrace/stages/shuffle.hpp>
void flows() {
EXAMPLE
}
