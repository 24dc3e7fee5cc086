/* The rate of an allreduce beside that of plain copies between pinned memory and the device, all ranks at
 * once: what staging could reach. Rank 0 prints lines of JSON, which tools/gpu_check reads.
 */
#include <stddef.h>

#include "device.h"

enum { kMiB = 1 << 20, kCopies = 10, kPortable = 1, kMapped = 2 };

/* Bytes in a second, of the slowest rank. */
static double slowest(const Device* device, double seconds, double bytes) {
  dtrun_error error;
  dtrun_op op = operation(DTRUN_ALLREDUCE, DTRUN_FLOAT64, 1);
  DTRUN_ERROR_INIT(error);
  op.reduce = DTRUN_MAX;
  op.send = op.recv = &seconds;
  dtrun_work* work = NULL;
  must(dtrun_submit(device->world, &op, &work, &error), &error, "dtrun_submit");
  must(dtrun_work_wait(work, -1, &error), &error, "dtrun_work_wait");
  dtrun_work_release(work);
  return bytes / seconds;
}

static double copies(Device* device, void* to, const void* from, size_t bytes) {
  copy_on(&device->stream, to, from, bytes);
  synchronize(&device->stream);
  barrier_of_host(device);
  const double start = seconds_now();
  for (int i = 0; i < kCopies; ++i) copy_on(&device->stream, to, from, bytes);
  synchronize(&device->stream);
  return slowest(device, seconds_now() - start, (double)bytes * kCopies);
}

static double sums(Device* device, float* memory, size_t bytes) {
  const dtrun_op op = sum_of_floats(memory, memory, bytes / sizeof(float));
  const int rounds = bytes >= 64 * (size_t)kMiB ? 3 : 10;
  submit(device, &op);
  synchronize(&device->stream);
  barrier_of_host(device);
  const double start = seconds_now();
  for (int i = 0; i < rounds; ++i) submit(device, &op);
  synchronize(&device->stream);
  return slowest(device, seconds_now() - start, (double)bytes * rounds);
}

int rate(Device* device) {
  int (*allocate)(void**, size_t, unsigned) = NULL;
  int (*clear)(void*, int, size_t, void*) = NULL;
  void* pinned = NULL;
  const size_t copied = (size_t)(device->largest_mib < 64 ? device->largest_mib : 64) * kMiB;
  float* const memory = device_memory(device, (size_t)device->largest_mib * kMiB);
  find("cudaHostAlloc", &allocate);
  find("cudaMemsetAsync", &clear);
  if (allocate(&pinned, copied, kPortable | kMapped) != 0) fail("cudaHostAlloc", "refused");
  if (clear(memory, 0, (size_t)device->largest_mib * kMiB, device->stream.native) != 0)
    fail("cudaMemsetAsync", "refused");
  const double out = copies(device, pinned, memory, copied), in = copies(device, memory, pinned, copied);
  if (device->rank == 0) {
    say("{\"copy_out_GBs\": %.3f, \"copy_in_GBs\": %.3f, \"ranks\": %d}\n", out / 1e9, in / 1e9,
        device->size);
  }
  for (size_t mib = 1; mib <= (size_t)device->largest_mib; mib *= 4) {
    const double got = sums(device, memory, mib * kMiB);
    if (device->rank == 0) {
      say("{\"bytes\": %zu, \"us\": %.1f, \"GBs\": %.3f, \"of_limit\": %.3f}\n", mib * kMiB,
          (double)(mib * kMiB) / got * 1e6, got / 1e9, got / (out < in ? out : in));
    }
  }
  return 0;
}
