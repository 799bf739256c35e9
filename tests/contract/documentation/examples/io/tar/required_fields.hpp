// block 1 is a member of an options struct
