#include "device.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kCopyDefault = 4 }; /* cudaMemcpyDefault: what the pointers say */

static int (*copy_async)(void*, const void*, size_t, int, void*);
static int (*wait_for_stream)(void*);
static int (*choose_device)(int);

void fail(const char* what, const char* text) {
  fprintf(stderr, "device_program: rank %d: %s: %s\n", dtrun_rank(), what, text);
  exit(1);
}

void must(dtrun_status status, const dtrun_error* error, const char* what) {
  if (status != DTRUN_OK) fail(what, error->message);
}

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  fflush(stdout);
}

void* runtime_function(const char* name) {
  static const char* const kNames[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  static void* image = NULL;
  for (size_t i = 0; image == NULL && i < sizeof kNames / sizeof *kNames; ++i) {
    image = dlopen(kNames[i], RTLD_NOW | RTLD_LOCAL);
  }
  if (image == NULL) fail("the CUDA runtime", dlerror());
  return dlsym(image, name);
}

/* ISO C has no cast from an object's address to a function's. */
void find(const char* name, void* out) {
  void* const found = runtime_function(name);
  if (found == NULL) fail("the CUDA runtime lacks", name);
  *(void**)out = found;
}

Device open_device(int index) {
  Device device;
  dtrun_error error;
  find("cudaMemcpyAsync", &copy_async);
  find("cudaStreamSynchronize", &wait_for_stream);
  find("cudaSetDevice", &choose_device);
  DTRUN_ERROR_INIT(error);
  must(dtrun_init(&error), &error, "dtrun_init");
  device.rank = dtrun_rank();
  device.size = dtrun_world_size();
  device.index = index;
  device.largest_mib = 256;
  device.world = dtrun_world();
  if (choose_device(index) != 0) fail("cudaSetDevice", "there is no such device");
  must(dtrun_comm_connect(device.world, DTRUN_DEVICE_CUDA, index, &error), &error, "dtrun_comm_connect");
  device.stream = new_stream(&device, 0);
  if (device.rank == 0) {
    say("%d %s, cuda %d, carried by %s\n", device.size, device.size == 1 ? "rank" : "ranks", index,
        dtrun_comm_route(device.world, DTRUN_DEVICE_CUDA, NULL));
  }
  return device;
}

void close_device(Device* device) {
  dtrun_stream_destroy(device->world, &device->stream);
  dtrun_finalize();
}

void* device_memory(const Device* device, size_t bytes) {
  void* memory = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  must(dtrun_alloc_on(device->world, bytes, DTRUN_DEVICE_CUDA, device->index, &memory, &error), &error,
       "dtrun_alloc_on");
  return memory;
}

void copy_on(const dtrun_stream* stream, void* to, const void* from, size_t bytes) {
  if (copy_async(to, from, bytes, kCopyDefault, stream->native) != 0) fail("cudaMemcpyAsync", "refused");
}

void synchronize(const dtrun_stream* stream) {
  if (wait_for_stream(stream->native) != 0) fail("cudaStreamSynchronize", "the device reports an error");
}

dtrun_stream new_stream(const Device* device, int priority) {
  dtrun_stream stream;
  dtrun_error error;
  DTRUN_INIT(stream);
  DTRUN_ERROR_INIT(error);
  must(dtrun_stream_create(device->world, DTRUN_DEVICE_CUDA, device->index, priority, &stream, &error),
       &error, "dtrun_stream_create");
  return stream;
}

dtrun_op operation(int kind, int dtype, uint64_t count) {
  dtrun_op op;
  DTRUN_INIT(op);
  op.kind = kind;
  op.dtype = dtype;
  op.count = count;
  op.root = op.peer = -1;
  return op;
}

dtrun_op sum_of_floats(const void* send, void* recv, uint64_t count) {
  dtrun_op op = operation(DTRUN_ALLREDUCE, DTRUN_FLOAT32, count);
  op.reduce = DTRUN_SUM;
  op.send = send;
  op.recv = recv;
  return op;
}

void submit(const Device* device, const dtrun_op* op) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  must(dtrun_submit_on(device->world, op, &device->stream, NULL, &error), &error, "dtrun_submit_on");
}

double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void barrier_of_host(const Device* device) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  must(dtrun_barrier(device->world, NULL, &error), &error, "dtrun_barrier");
}

float total_of_ranks(const Device* device) { return (float)(device->size * (device->size + 1)) / 2; }

void expect_all(const float* got, size_t count, float want, const char* what) {
  for (size_t i = 0; i < count; ++i) {
    char text[100];
    if (got[i] == want) continue;
    snprintf(text, sizeof text, "element %zu is %g, not %g", i, (double)got[i], (double)want);
    fail(what, text);
  }
}
