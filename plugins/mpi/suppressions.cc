// What sanitizers must not report in programs that load this plugin.
//
// Open MPI keeps memory until the process ends, some of it for components that it has unloaded
// again, which no suppression can name; so leaks are not looked for here. It is not instrumented,
// so what it orders looks like a race.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "called_from_lib:libmpi.so.40\ncalled_from_lib:libopen-rte.so.40\ncalled_from_lib:libopen-pal.so."
         "40\n"
         "called_from_lib:libpmix.so.2\nrace:libmpi.so\nrace:libopen-pal.so\nrace:libopen-rte.so\nrace:"
         "libpmix.so\n"
         "race:mca_\nmutex:libopen-pal.so\nsignal:libopen-pal.so\n";
}
