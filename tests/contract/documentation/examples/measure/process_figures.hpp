void run_epoch();
void example() {
EXAMPLE
}
