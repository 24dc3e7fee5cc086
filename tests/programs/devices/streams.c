/* Streams, and what is refused about them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { kFloats = 1 << 18, kRounds = 50 };

/* Data that one stream writes, another reduces and a third reads: wrong unless each waits for the one before.
 */
static void across_streams(Device* device, float* on_device[2], float* on_host) {
  const dtrun_stream reader = new_stream(device, 1);
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  for (int round = 1; round <= kRounds; ++round) {
    dtrun_work* work = NULL;
    for (int i = 0; i < kFloats; ++i) on_host[i] = (float)(round * (device->rank + 1));
    copy_on(&device->stream, on_device[0], on_host, sizeof(float) * kFloats);
    const dtrun_op op = sum_of_floats(on_device[0], on_device[1], kFloats);
    if (round % 2 == 0) {
      submit(device, &op);
      copy_on(&device->stream, on_host, on_device[1], sizeof(float) * kFloats);
      synchronize(&device->stream);
    } else {
      must(dtrun_submit_on(device->world, &op, &device->stream, &work, &error), &error, "dtrun_submit_on");
      must(dtrun_work_wait_on(work, &reader, &error), &error, "dtrun_work_wait_on");
      copy_on(&reader, on_host, on_device[1], sizeof(float) * kFloats);
      dtrun_work_release(work); /* before it has ended, as a program may */
      synchronize(&reader);
    }
    expect_all(on_host, kFloats, (float)round * total_of_ranks(device),
               round % 2 == 0 ? "one stream" : "two streams");
  }
  dtrun_stream_destroy(device->world, &reader);
}

/* Many on their way, in place, and one wait on the host. */
static void queued(Device* device, float* on_device, float* on_host) {
  dtrun_error error;
  dtrun_work* work = NULL;
  float want = 1;
  DTRUN_ERROR_INIT(error);
  for (int i = 0; i < kFloats; ++i) on_host[i] = 1;
  copy_on(&device->stream, on_device, on_host, sizeof(float) * kFloats);
  dtrun_op op = sum_of_floats(on_device, on_device, kFloats);
  op.reduce = DTRUN_AVG;
  for (int i = 0; i < kRounds; ++i) submit(device, &op);
  op.reduce = DTRUN_SUM;
  must(dtrun_submit_on(device->world, &op, &device->stream, &work, &error), &error, "dtrun_submit_on");
  must(dtrun_work_wait(work, -1, &error), &error, "dtrun_work_wait");
  dtrun_work_release(work);
  want *= (float)device->size;
  copy_on(&device->stream, on_host, on_device, sizeof(float) * kFloats);
  synchronize(&device->stream);
  expect_all(on_host, kFloats, want, "a queue of operations");
}

int streams(Device* device) {
  float* on_device[2] = {device_memory(device, sizeof(float) * kFloats),
                         device_memory(device, sizeof(float) * kFloats)};
  float* const on_host = malloc(sizeof(float) * kFloats);
  if (on_host == NULL) fail("streams", "no memory");
  across_streams(device, on_device, on_host);
  queued(device, on_device[0], on_host);
  free(on_host);
  dtrun_free(device->world, on_device[0]);
  dtrun_free(device->world, on_device[1]);
  say("rank %d: %d sums over one and two streams and a queue of %d are right\n", device->rank, kRounds,
      kRounds);
  return 0;
}

static void expect_refusal(Device* device, const dtrun_op* op, const dtrun_stream* stream, const char* text) {
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_status status = dtrun_submit_on(device->world, op, stream, NULL, &error);
  if (status != DTRUN_INVALID_ARGUMENT || strstr(error.message, text) == NULL) fail(text, error.message);
  if (device->rank == 0) say("refused: %s\n", error.message);
}

int refusals(Device* device) {
  float on_host[4] = {0, 0, 0, 0};
  void* const on_device = device_memory(device, sizeof on_host);
  dtrun_op op = sum_of_floats(on_host, on_device, 4);
  dtrun_stream missing = device->stream;
  expect_refusal(device, &op, &device->stream, "is host memory, and the stream is of cuda");
  op.send = on_device;
  missing.device_index = 1000;
  expect_refusal(device, &op, &missing, "cuda 1000");
  submit(device, &op); /* neither started anything */
  synchronize(&device->stream);
  dtrun_free(device->world, on_device);
  return 0;
}
