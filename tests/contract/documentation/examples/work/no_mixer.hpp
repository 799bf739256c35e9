#include <cstdio>
struct columns {};
void show() {
EXAMPLE
}
