// block 1 is a message of a compiler
