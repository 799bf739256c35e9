void example(double a, double b, double c) {
EXAMPLE
}
