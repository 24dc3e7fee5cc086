/* Operations between delays on the device. The data is written on the stream after a delay, so an operation
 * that does not wait for its stream reads what was there before; what reads the result is queued at once, so
 * it is too early unless it waits for the operation; and what overwrites the operands is queued at once, too.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

enum { kDelayMs = 40, kCounts = 3 };
static const size_t kFloats[kCounts] = {1024, 3 << 18, (9 << 20) + 5};

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

/* What delays a stream; NULL where there is nothing. */
static const char* prepare_delays(void) {
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

static void delay(const dtrun_stream* stream) {
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

typedef struct {
  float *fresh, *stale, *work, *result; /* on the device */
  float* on_host;
} Memory;

static void fill(Device* device, const Memory* memory, float* on_device, size_t count, float value) {
  for (size_t i = 0; i < count; ++i) memory->on_host[i] = value;
  copy_on(&device->stream, on_device, memory->on_host, sizeof(float) * count);
  synchronize(&device->stream);
}

/* Returns how long the host was held by the calls, in seconds. */
static double try_one(Device* device, const Memory* memory, size_t count, const dtrun_stream* reader) {
  const size_t bytes = sizeof(float) * count;
  dtrun_work* work = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  fill(device, memory, memory->fresh, count, (float)(device->rank + 1));
  fill(device, memory, memory->stale, count, -7);
  fill(device, memory, memory->work, count, -7);
  fill(device, memory, memory->result, count, -7);
  barrier_of_host(device);
  const double start = seconds_now();
  delay(&device->stream);
  copy_on(&device->stream, memory->work, memory->fresh, bytes);
  const dtrun_op op = sum_of_floats(memory->work, memory->work, count);
  if (reader == NULL) {
    submit(device, &op);
    copy_on(&device->stream, memory->result, memory->work, bytes);
    copy_on(&device->stream, memory->work, memory->stale, bytes);
    reader = &device->stream;
  } else {
    must(dtrun_submit_on(device->world, &op, &device->stream, &work, &error), &error, "dtrun_submit_on");
    must(dtrun_work_wait_on(work, reader, &error), &error, "dtrun_work_wait_on");
    copy_on(reader, memory->result, memory->work, bytes);
    dtrun_work_release(work);
  }
  const double held = seconds_now() - start;
  delay(reader);
  copy_on(reader, memory->on_host, memory->result, bytes);
  synchronize(reader);
  synchronize(&device->stream);
  expect_all(memory->on_host, count, total_of_ranks(device),
             reader == &device->stream ? "order on one stream" : "order over two streams");
  return held;
}

int order(Device* device) {
  const size_t room = sizeof(float) * kFloats[kCounts - 1];
  const dtrun_stream reader = new_stream(device, 0);
  const Memory memory = {device_memory(device, room), device_memory(device, room),
                         device_memory(device, room), device_memory(device, room), malloc(room)};
  const char* const delays = prepare_delays();
  if (memory.on_host == NULL) fail("order", "no memory");
  if (delays == NULL) {
    say("skipped, because nothing here delays a stream\n");
    return 77;
  }
  for (int i = 0; i < kCounts; ++i) { /* connects what NCCL connects at the first of a kind and size */
    const dtrun_op op = sum_of_floats(memory.work, memory.result, kFloats[i]);
    submit(device, &op);
    synchronize(&device->stream);
  }
  for (int i = 0; i < kCounts; ++i) {
    double held = 0;
    for (int two = 0; two < 2; ++two) {
      const double longer = try_one(device, &memory, kFloats[i], two ? &reader : NULL);
      if (longer > held) held = longer;
    }
    say("rank %d: sums of %zu bytes between delays of %d ms by %s are in order; calls took %.1f ms\n",
        device->rank, sizeof(float) * kFloats[i], kDelayMs, delays, held * 1e3);
  }
  free(memory.on_host);
  return 0;
}
