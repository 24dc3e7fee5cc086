// What ThreadSanitizer must not report in a program that loads this plugin.
//
// The distribution's Gloo and libstdc++ are not instrumented: the reference counts by which
// Gloo hands a buffer from its thread to ours, and by which an exception is shared between
// threads, are invisible, so what they order looks like a race. Link this into the test.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libglpN.so\n"
         "race:glpN::transport::UnboundBuffer\n"
         "race:std::__exception_ptr\n";
}
