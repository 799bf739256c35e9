void show() {
EXAMPLE
  static_cast<void>(stride);
}
