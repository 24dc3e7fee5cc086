#include "core/late/late_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

namespace dtrun::late {

void* Library::Find(const char* function) {
  std::call_once(once_, [this] { handle_ = ::dlopen(name_, RTLD_NOW | RTLD_LOCAL); });
  void* const found = handle_ == nullptr ? nullptr : ::dlsym(handle_, function);
  if (found != nullptr) return found;
  const char* const why = ::dlerror();  // null if an earlier call failed to load the library
  std::fprintf(stderr,
               "dtrun: cannot load '%s', which jobs on several hosts need: %s; install the package %s\n",
               name_, why == nullptr ? "not found" : why, package_);
  std::fflush(stderr);
  ::_exit(2);
}

}  // namespace dtrun::late
