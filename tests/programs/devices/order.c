/* Operations between delays on the device. The data is written on the stream after a delay, so an operation
 * that does not wait for its stream reads what was there before; what reads the result is queued at once, so
 * it is too early unless it waits for the operation; and what overwrites the operands is queued at once, too.
 */
#include <stdlib.h>

#include "device.h"

enum { kCounts = 3 };
static const size_t kFloats[kCounts] = {1024, 3 << 18, (9 << 20) + 5};

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
