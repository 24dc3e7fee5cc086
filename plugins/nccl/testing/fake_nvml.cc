// NVIDIA's management library, as far as the plugin asks it. It knows the devices of the fake CUDA
// runtime; DTRUN_FAKE_NVML_P2P is the status of every pair.
#include <cstdlib>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = const_cast<char*>(bus_id);
  return 0;
}

int nvmlDeviceGetP2PStatus(void*, void*, int, int* status) {
  const char* const wanted = std::getenv("DTRUN_FAKE_NVML_P2P");
  *status = wanted == nullptr ? 0 : std::atoi(wanted);
  return 0;
}

}  // extern "C"
