/* Delays of a stream. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

/* A kernel that ends after some nanoseconds: the driver compiles it, so that no nvcc is needed. */
static const char kKernel[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry delay(.param .u64 length) {\n"
    " .reg .u64 %now, %end, %length;\n .reg .pred %early;\n"
    " ld.param.u64 %length, [length];\n mov.u64 %now, %globaltimer;\n add.u64 %end, %now, %length;\n"
    "again:\n mov.u64 %now, %globaltimer;\n setp.lt.u64 %early, %now, %end;\n @%early bra again;\n ret;\n}\n";

static int (*launch_kernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            void*, void**, void**);
static int (*launch_on_host)(void*, void (*)(void*), void*);
static void* kernel;

static void sleep_on_host(void* none) {
  (void)none;
  usleep(1000 * kDelayMs);
}

const char* prepare_delays(void) {
  int (*load)(void**, const void*) = NULL;
  int (*get)(void**, void*, const char*) = NULL;
  void* module = NULL;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != NULL) {
    *(void**)&load = dlsym(driver, "cuModuleLoadData");
    *(void**)&get = dlsym(driver, "cuModuleGetFunction");
    *(void**)&launch_kernel = dlsym(driver, "cuLaunchKernel");
  }
  if (load != NULL && get != NULL && launch_kernel != NULL && load(&module, kKernel) == 0 &&
      get(&kernel, module, "delay") == 0)
    return "kernels";
  kernel = NULL;
  *(void**)&launch_on_host = runtime_function("cudaLaunchHostFunc");
  return launch_on_host != NULL ? "functions of the host" : NULL;
}

void delay(const dtrun_stream* stream) {
  unsigned long long length = 1000000ULL * kDelayMs;
  void* arguments[] = {&length};
  int code = 0;
  if (kernel != NULL) {
    code = launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream->native, arguments, NULL);
  } else {
    code = launch_on_host(stream->native, sleep_on_host, NULL);
  }
  if (code != 0) fail("a delay", "the driver refused it");
}
