#include <millrace/stages/map.hpp>
void flows() {
EXAMPLE
}
