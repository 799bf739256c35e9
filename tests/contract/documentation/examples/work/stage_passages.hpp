void example() {
EXAMPLE
}
