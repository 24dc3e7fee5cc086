// What ThreadSanitizer must not report in programs that load libraries which it has not seen
// compiled: what orders their accesses (reference counts, OpenMP's barriers, their own locks)
// is invisible to it, so it looks like a race. Link this into such a program.
//
// Gloo hands buffers from its thread to ours and shares exceptions between threads; libtorch
// and oneDNN guard their registries and caches by locks inside them. glibc frees the thread-locals of a
// loaded plugin when a thread takes over the stack of one that has ended, under a lock of its own.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libglpN.so\n"
         "race:glpN::transport::UnboundBuffer\n"
         "race:std::__exception_ptr\n"
         "race:libtorch_cpu.so\n"
         "race:libdnnl.so\n"
         "race:_dl_deallocate_tls\n";
}
