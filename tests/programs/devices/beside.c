/* Calls of CUDA's that wait for the device, or take a lock of the driver's, while a sum is on its way behind
 * a delay. What carries the sum must not need such a call itself before the device can go on: that would be a
 * deadlock.
 */
#include <stdlib.h>

#include "device.h"

enum { kMiB = 1 << 20, kSum = 64 * kMiB, kRounds = 3, kHostFlags = 3 /* portable, mapped */ };

static int (*allocate)(void**, size_t);
static int (*release)(void*);
static int (*allocate_host)(void**, size_t, unsigned);
static int (*release_host)(void*);
static int (*wait_for_device)(void);
static void* spare; /* of the device */

static int release_memory(void) {
  const int code = release(spare);
  spare = NULL;
  return code;
}
static int allocate_memory(void) { return allocate(&spare, 256 * (size_t)kMiB); }
static int pin_memory(void) {
  void* memory = NULL;
  const int code = allocate_host(&memory, 64 * (size_t)kMiB, kHostFlags);
  return code != 0 ? code : release_host(memory);
}
static int wait_for_all(void) { return wait_for_device(); }

int beside(Device* device) {
  static const struct {
    const char* name;
    int (*run)(void);
  } kCalls[] = {{"cudaMalloc", allocate_memory},
                {"cudaFree", release_memory},
                {"cudaHostAlloc and cudaFreeHost", pin_memory},
                {"cudaDeviceSynchronize", wait_for_all}};
  const size_t count = kSum / sizeof(float);
  float* const on_device = device_memory(device, kSum);
  float* const on_host = malloc(kSum);
  const char* const delays = prepare_delays();
  find("cudaMalloc", &allocate);
  find("cudaFree", &release);
  find("cudaHostAlloc", &allocate_host);
  find("cudaFreeHost", &release_host);
  find("cudaDeviceSynchronize", &wait_for_device);
  if (on_host == NULL) fail("beside", "no memory");
  const dtrun_op op = sum_of_floats(on_device, on_device, count);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
      for (size_t k = 0; k < count; ++k) on_host[k] = (float)(device->rank + 1);
      copy_on(&device->stream, on_device, on_host, kSum);
      synchronize(&device->stream);
      barrier_of_host(device);
      if (delays != NULL) delay(&device->stream);
      submit(device, &op);
      if (kCalls[i].run() != 0) fail(kCalls[i].name, "the runtime refused it beside a sum");
      copy_on(&device->stream, on_host, on_device, kSum);
      synchronize(&device->stream);
      expect_all(on_host, count, total_of_ranks(device), kCalls[i].name);
      if (round == 0) say("rank %d: %s beside a sum is right\n", device->rank, kCalls[i].name);
    }
  }
  free(on_host);
  return 0;
}
