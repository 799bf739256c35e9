void use(const char* line);
void example() {
char line[80];
EXAMPLE
}
