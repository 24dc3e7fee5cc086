// What sanitizers must not report in a program that loads this plugin: UCX's own doings.
//
// The distribution's UCX is not instrumented, so what its atomics order looks like a race, and it
// keeps 100 bytes of component tables that nothing points at when the process ends. Link this
// into the test.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libucp.so\n"
         "race:libuct.so\n"
         "race:libucs.so\n";
}

extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libuct.so\n";
}
