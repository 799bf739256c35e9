// block 1 is a picture of the connections
