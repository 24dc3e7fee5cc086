// Devices of CUDA: memory, streams, events and copies, over the libcudart that this process has or finds.
//
// Core owns the object; members as dtrun/abi/device.h says, any thread. An event belongs to its owner and is
// used by one thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cuda_api.h"
#include "cuda_driver.h"
#include "dtrun/plugin.hpp"

namespace dtrun::cuda {

class CudaEvent {
 public:
  // Of `device`, which is current.
  CudaEvent(const CudaApi& api, int device);
  ~CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Event get() const { return event_; }
  int device() const { return device_; }

 private:
  const CudaApi& api_;
  const int device_;
  Event event_ = nullptr;
};

class CudaDevice final : public sdk::Device<CudaEvent> {
 public:
  static constexpr int kDeviceKind = DTRUN_DEVICE_CUDA;
  CudaDevice(const sdk::Host& host, const sdk::Options& options);

  int Count() override;
  int Current() override;
  std::string Describe(int device_index) override;
  sdk::MemoryPlace MemoryOf(const void* pointer) override;
  void* MemAlloc(const dtrun_mem_params& params) override;
  void MemFree(const dtrun_mem_params& params, void* memory) override;
  void* StreamCreate(const dtrun_stream_params& params) override;
  void StreamDestroy(const dtrun_stream& stream) override;
  bool StreamCapturing(const dtrun_stream& stream) override;
  void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) override;
  std::unique_ptr<CudaEvent> EventCreate(int device_index) override;
  void EventRecord(CudaEvent& event, const dtrun_stream& stream) override;
  bool EventTest(CudaEvent& event) override;
  void EventWait(CudaEvent& event, const dtrun_stream& stream) override;
  void CounterWait(const std::uint32_t* counter, std::uint32_t value, const dtrun_stream& stream) override;

 private:
  // Throws unless there is such a device; remembers it as one that is in use.
  int Checked(int device_index);
  int DeviceOf(const dtrun_stream& stream);
  // The device for what belongs to none: the one used last, since making another one current would open it
  // and take memory of it.
  int AnyDevice();

  const CudaApi api_;
  const CudaDriver driver_;
  std::atomic<int> used_last_{-1};
};

}  // namespace dtrun::cuda
