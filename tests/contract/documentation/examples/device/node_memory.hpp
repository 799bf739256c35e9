void fill(void*);
void example() {
EXAMPLE
}
