#include <millrace/run/session_options.hpp>

void show() {
EXAMPLE
}
