// NVML of two GPUs, as far as core/node/use_meter.cc asks it. This process uses the second.
#include <stddef.h>
#include <unistd.h>

struct utilization {
  unsigned gpu, memory;
};
struct process_info {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
struct event_data {
  void* device;
  unsigned long long type, data;
  unsigned instance, compute_instance;
};

static char devices[2];
static unsigned long long registered[2];
static int events_left = 1;

static int is_second(const void* device) { return device == devices + 1; }

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 2, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { return *device = devices + index, 0; }
int nvmlDeviceGetUtilizationRates(void* device, struct utilization* use) {
  return use->gpu = is_second(device) ? 87 : 3, use->memory = 1, 0;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  return *mhz = is_second(device) && type == 1 ? 1410 : 0, 0;
}
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  return *mhz = is_second(device) && type == 1 ? 1980 : 0, 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return *reasons = is_second(device) ? 0x4 | 0x20 | 0x40 : 0x1, 0;
}
int nvmlDeviceGetTotalEccErrors(void* device, int type, int counter, unsigned long long* errors) {
  if (!is_second(device)) return 3;  // not supported
  return *errors = type == 1 && counter == 0 ? 2 : 0, 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process_info* processes) {
  if (!is_second(device)) return *count = 0, 0;
  if (processes == NULL || *count == 0) return *count = 1, 7;  // insufficient size
  *count = 1;
  processes[0].pid = (unsigned)getpid();
  processes[0].memory = 1ULL << 30;
  return 0;
}
int nvmlEventSetCreate(void** set) { return *set = registered, 0; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  return ((unsigned long long*)set)[is_second(device)] = types, 0;
}
int nvmlEventSetWait_v2(void* set, struct event_data* event, unsigned ms) {
  if (((unsigned long long*)set)[1] != 8 || ms != 0 || events_left-- <= 0) return 10;  // timeout
  event->device = devices + 1;
  event->type = 8;
  event->data = 79;
  return 0;
}
