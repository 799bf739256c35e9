// A user's program of two files that call each other with a type of Millrace.
#include <millrace/item/position.hpp>

#include <string>

std::string words_of(const millrace::position& at) { return millrace::to_text(at); }

bool same_words(const millrace::position& at);

int main() { return same_words(millrace::position{}) ? 0 : 1; }
