/* Ranks that do not call, call something else, or give up: what the others are told. */
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

enum { kElements = 1 << 20 };

/* Starts a sum that rank 0 leaves out, on a communicator of its own, and ends it by `how`. */
static int left_alone(Device* device, int by_abort) {
  dtrun_comm* part = NULL;
  dtrun_work* work = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  must(dtrun_comm_split(device->world, 0, device->rank, &part, &error), &error, "dtrun_comm_split");
  must(dtrun_comm_connect(part, DTRUN_DEVICE_CUDA, device->index, &error), &error, "dtrun_comm_connect");
  float* const memory = device_memory(device, sizeof(float) * kElements);
  dtrun_op op = sum_of_floats(memory, memory, kElements);
  if (!by_abort) op.timeout_ns = 1000000000;
  if (device->rank != 0) {
    const double start = seconds_now();
    must(dtrun_submit_on(part, &op, &device->stream, &work, &error), &error, "dtrun_submit_on");
    if (by_abort) {
      usleep(300000);
      must(dtrun_comm_abort(part, "the program has changed its mind", &error), &error, "dtrun_comm_abort");
    }
    const dtrun_status status = dtrun_work_wait(work, -1, &error);
    say("rank %d: %s: %s\n", device->rank, dtrun_status_text(status), error.message);
    if (status != (by_abort ? DTRUN_ABORTED : DTRUN_TIMEOUT)) fail("the sum ended otherwise", error.message);
    dtrun_work_release(work);
    synchronize(&device->stream); /* its kernel has ended, or this does not */
    say("rank %d: the stream is free after %.1f s\n", device->rank, seconds_now() - start);
  }
  barrier_of_host(device); /* the communicator of all goes on */
  dtrun_comm_free(part);
  return 0;
}

int abort_one(Device* device) { return device->size > 1 ? left_alone(device, 1) : 77; }
int deadline(Device* device) { return device->size > 1 ? left_alone(device, 0) : 77; }

/* The last rank's third sum has another count. Ends by a failure with a text. */
int mismatch(Device* device) {
  float* const memory = device_memory(device, sizeof(float) * kElements);
  dtrun_error error;
  dtrun_status status = DTRUN_OK;
  DTRUN_ERROR_INIT(error);
  for (int call = 1; status == DTRUN_OK; ++call) {
    const int odd = call == 3 && device->rank == device->size - 1;
    const dtrun_op op = sum_of_floats(memory, memory, odd ? 9 : 8);
    status = dtrun_submit_on(device->world, &op, &device->stream, NULL, &error);
    usleep(10000);
  }
  fail("a sum", error.message);
  return 1;
}

/* The last rank leaves out its third sum and stands still; the others wait for their device. */
int hang(Device* device) {
  float* const memory = device_memory(device, sizeof(float) * kElements);
  const dtrun_op op = sum_of_floats(memory, memory, 8);
  for (int call = 1; call <= 4; ++call) { /* the fourth says what became of the third */
    if (call == 3 && device->rank == device->size - 1) pause();
    submit(device, &op);
    synchronize(&device->stream);
  }
  return 1;
}
