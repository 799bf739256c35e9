// The program of every_example has this main(): those of the examples are in namespaces of their own.
int main() { return 0; }
