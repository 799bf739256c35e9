// block 1 is a call that does not compile
