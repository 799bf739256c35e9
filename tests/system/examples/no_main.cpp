// The main() of the program of every_example: the examples' own ones are in separate namespaces.
int main() { return 0; }
