// The second file of the user's program.
#include <millrace/item/position.hpp>

#include <string>

std::string words_of(const millrace::position& at);

bool same_words(const millrace::position& at) { return words_of(at) == millrace::to_text(at); }
