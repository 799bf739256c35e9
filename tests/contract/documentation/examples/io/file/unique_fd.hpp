#include <fcntl.h>
#include <cerrno>
void example(const char* path, void (*fail)(int)) {
EXAMPLE
}
