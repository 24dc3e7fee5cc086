// What sanitizers must not report in programs that load this plugin.
//
// Open MPI keeps memory until the process ends, some of it for components that it has unloaded
// again, which no suppression can name; so leaks are not looked for here. It is not instrumented,
// so what it orders looks like a race.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libmpi.so\nrace:libopen-pal.so\nrace:libopen-rte.so\nrace:libpmix.so\nrace:libevent\nrace:mca_"
         "\n"
         "mutex:libmpi.so\nmutex:libopen-pal.so\nmutex:libpmix.so\nmutex:libevent\nmutex:mca_\n"
         "deadlock:libmpi.so\ndeadlock:libopen-pal.so\ndeadlock:libpmix.so\ndeadlock:libevent\ndeadlock:mca_"
         "\n";
}
