void show() {
EXAMPLE
}
