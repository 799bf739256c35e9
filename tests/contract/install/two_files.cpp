// Two files of a user's program that call each other with a type of Millrace: the second one with PART.
#include <millrace/item/position.hpp>

#include <string>

#ifdef PART
std::string words_of(const millrace::position& at);

bool same_words(const millrace::position& at) { return words_of(at) == millrace::to_text(at); }
#else
std::string words_of(const millrace::position& at) { return millrace::to_text(at); }

bool same_words(const millrace::position& at);

int main() { return same_words(millrace::position{}) ? 0 : 1; }
#endif
