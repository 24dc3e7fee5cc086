/* Operations of a few bytes less and more than a staging piece (4 MiB), and of many pieces: every element is
 * looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { kPiece = 1 << 20, kCounts = 3 };
static const size_t kFloats[kCounts] = {kPiece - 1, kPiece + 1, 9 * kPiece + 5};

typedef struct {
  Device* device;
  size_t count;       /* of a rank's part */
  float *send, *recv; /* on the device, with room for the parts of all ranks */
  float *sent, *got;  /* on the host */
} Large;

static float number(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 3) % 11); }

static float sum_at(const Large* large, size_t i) {
  float total = 0;
  for (int rank = 0; rank < large->device->size; ++rank) total += number(rank, i);
  return total;
}

/* Runs `op` on `elements` sent floats, and brings `received` back. */
static void run(Large* large, dtrun_op op, size_t elements, size_t received, int with_handle) {
  Device* const device = large->device;
  dtrun_work* work = NULL;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  for (size_t i = 0; i < elements; ++i) large->sent[i] = number(device->rank, i);
  for (size_t i = 0; i < received; ++i) large->got[i] = -1;
  copy_on(&device->stream, large->send, large->sent, sizeof(float) * elements);
  copy_on(&device->stream, large->recv, large->got, sizeof(float) * received);
  synchronize(&device->stream);
  must(dtrun_submit_on(device->world, &op, &device->stream, with_handle ? &work : NULL, &error), &error,
       "dtrun_submit_on");
  if (with_handle) {
    must(dtrun_work_wait(work, -1, &error), &error, "dtrun_work_wait");
    dtrun_work_release(work);
  }
  copy_on(&device->stream, large->got, op.recv, sizeof(float) * received);
  synchronize(&device->stream);
}

static void expect_at(const Large* large, const char* what, size_t i, float want) {
  if (large->got[i] == want) return;
  say("wrong: rank %d, %s of %zu bytes: element %zu is %g, not %g\n", large->device->rank, what,
      large->count * sizeof(float), i, (double)large->got[i], (double)want);
  fail(what, "a wrong element");
}

static dtrun_op described(const Large* large, int kind, int in_place) {
  dtrun_op op = operation(kind, DTRUN_FLOAT32, large->count);
  if (kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE_SCATTER) op.reduce = DTRUN_SUM;
  if (kind == DTRUN_BROADCAST) op.root = large->device->size - 1;
  op.send = large->send;
  op.recv = in_place ? large->send : large->recv;
  return op;
}

static void try_all(Large* large) {
  const Device* const device = large->device;
  const size_t count = large->count, all = count * (size_t)device->size, own = count * (size_t)device->rank;
  for (int in_place = 0; in_place < 2; ++in_place) {
    run(large, described(large, DTRUN_ALLREDUCE, in_place), count, count, in_place);
    for (size_t i = 0; i < count; ++i) expect_at(large, "allreduce", i, sum_at(large, i));
  }
  run(large, described(large, DTRUN_BROADCAST, 1), count, count, 0);
  for (size_t i = 0; i < count; ++i) expect_at(large, "broadcast", i, number(device->size - 1, i));
  run(large, described(large, DTRUN_ALLGATHER, 0), count, all, 1);
  for (size_t i = 0; i < all; ++i) expect_at(large, "allgather", i, number((int)(i / count), i % count));
  run(large, described(large, DTRUN_REDUCE_SCATTER, 0), all, count, 0);
  for (size_t i = 0; i < count; ++i) expect_at(large, "reduce_scatter", i, sum_at(large, own + i));
  run(large, described(large, DTRUN_ALLTOALL, 0), all, all, 1);
  for (size_t i = 0; i < all; ++i) expect_at(large, "alltoall", i, number((int)(i / count), own + i % count));
  if (device->size > 1 && device->rank < 2) {
    dtrun_op op = described(large, device->rank == 0 ? DTRUN_SEND : DTRUN_RECV, 0);
    op.peer = 1 - device->rank;
    run(large, op, count, count, 1);
    for (size_t i = 0; i < count && device->rank == 1; ++i) expect_at(large, "recv", i, number(0, i));
  }
}

int large(Device* device) {
  const size_t room = sizeof(float) * kFloats[kCounts - 1] * (size_t)device->size;
  Large all = {device,       0,           device_memory(device, room), device_memory(device, room),
               malloc(room), malloc(room)};
  if (all.sent == NULL || all.got == NULL) fail("large", "no memory");
  for (int i = 0; i < kCounts; ++i) {
    all.count = kFloats[i];
    try_all(&all);
    if (device->rank == 0) say("operations of %zu bytes are right\n", all.count * sizeof(float));
  }
  free(all.sent);
  free(all.got);
  return 0;
}
