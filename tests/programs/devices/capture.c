/* An allreduce in a graph, captured in each mode: what dtrun asks CUDA meanwhile must invalidate none. */
#include <stdlib.h>

#include "device.h"

enum { kFloats = 1 << 18, kReplays = 3 };

typedef struct {
  int (*begin)(void*, int);
  int (*end)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*launch)(void*, void*);
} Graphs;

static int find_graphs(Graphs* graphs) {
  *(void**)&graphs->begin = runtime_function("cudaStreamBeginCapture");
  *(void**)&graphs->end = runtime_function("cudaStreamEndCapture");
  *(void**)&graphs->instantiate = runtime_function("cudaGraphInstantiateWithFlags");
  *(void**)&graphs->launch = runtime_function("cudaGraphLaunch");
  return graphs->begin != NULL && graphs->end != NULL && graphs->instantiate != NULL &&
         graphs->launch != NULL;
}

/* The replayed sum of ones; 0 where the backend refuses a captured stream. */
static int capture_in(Device* device, const Graphs* graphs, int mode, const char* name, float* on_device,
                      float* on_host) {
  float want = 1;
  void *graph = NULL, *executable = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_op op = sum_of_floats(on_device, on_device, kFloats);
  for (int i = 0; i < kFloats; ++i) on_host[i] = 1;
  copy_on(&device->stream, on_device, on_host, sizeof(float) * kFloats);
  synchronize(&device->stream);
  barrier_of_host(device);
  if (graphs->begin(device->stream.native, mode) != 0) fail("cudaStreamBeginCapture", "refused");
  const dtrun_status status = dtrun_submit_on(device->world, &op, &device->stream, NULL, &error);
  const int ended = graphs->end(device->stream.native, &graph);
  if (status == DTRUN_UNSUPPORTED) {
    say("refused: %s\n", error.message);
    return 0;
  }
  must(status, &error, name);
  if (ended != 0) fail(name, "cudaStreamEndCapture refused: something invalidated the capture");
  if (graphs->instantiate(&executable, graph, 0) != 0) fail("cudaGraphInstantiateWithFlags", "refused");
  for (int i = 0; i < kReplays; ++i) {
    if (graphs->launch(executable, device->stream.native) != 0) fail("cudaGraphLaunch", "refused");
    want *= (float)device->size;
  }
  copy_on(&device->stream, on_host, on_device, sizeof(float) * kFloats);
  synchronize(&device->stream);
  expect_all(on_host, kFloats, want, name);
  say("rank %d: a graph with an allreduce, captured in %s mode, is right after %d replays\n", device->rank,
      name, kReplays);
  return 1;
}

int capture(Device* device) {
  static const char* const kModes[] = {"global", "thread-local", "relaxed"}; /* of cudaStreamCaptureMode */
  Graphs graphs;
  if (!find_graphs(&graphs)) {
    say("skipped, because this CUDA runtime has no graphs\n");
    return 77;
  }
  float* const on_device = device_memory(device, sizeof(float) * kFloats);
  float* const on_host = malloc(sizeof(float) * kFloats);
  if (on_host == NULL) fail("capture", "no memory");
  const dtrun_op op = sum_of_floats(on_device, on_device, kFloats);
  submit(device, &op); /* NCCL connects at the first operation of its kind */
  synchronize(&device->stream);
  for (int mode = 0; mode < 3; ++mode) {
    if (!capture_in(device, &graphs, mode, kModes[mode], on_device, on_host)) break;
  }
  free(on_host);
  return 0;
}
