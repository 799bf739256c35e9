#ifdef __x86_64__
EXAMPLE
#endif
