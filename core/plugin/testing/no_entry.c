/* A shared object that is not a plugin. */
__attribute__((visibility("default"))) int something_else(void);
int something_else(void) { return 1; }
