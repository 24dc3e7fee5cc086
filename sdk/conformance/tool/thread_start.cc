// `pthread_create` of the whole program, the plugin and its libraries included: sees which threads a plugin
// starts (H10). The dynamic linker takes the program's symbols first.
#include <dlfcn.h>
#include <pthread.h>

#include "sdk/conformance/thread_watch.h"

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*function)(void*),
                                                                     void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  void* const wrapped = dtrun::conformance::WrapThread(__builtin_return_address(0), function, argument);
  if (wrapped == nullptr) return create(thread, attributes, function, argument);
  return create(thread, attributes, &dtrun::conformance::RunThread, wrapped);
}
