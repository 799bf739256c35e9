#include <cstdio>
void example(int gpus) {
EXAMPLE
}
