// block 1 is a table of the states of slots
