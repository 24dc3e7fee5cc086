// Small owners of what the CUDA runtime makes. Each belongs to one object; not shared between
// threads without a lock.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "../cuda/cuda_api.h"

namespace dtrun::nccl_plugin {

using cuda::CudaApi;
using cuda::OnDevice;

// Memory of the current device. Freeing it waits for the device.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const CudaApi& api, std::size_t bytes, const std::string& place = "the device");
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : api_(other.api_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return data_; }

 private:
  const CudaApi* api_ = nullptr;
  void* data_ = nullptr;
};

// A stream that does not wait for the device's default stream.
class OwnStream {
 public:
  explicit OwnStream(const CudaApi& api);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  cuda::Stream get() const { return stream_; }

 private:
  const CudaApi& api_;
  cuda::Stream stream_ = nullptr;
};

// Events of one device, used again and again. Any thread.
class EventPool {
 public:
  explicit EventPool(const CudaApi& api) : api_(api) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // REQUIRES that the pool's device is current.
  cuda::Event Take();
  // Whatever waits on `event` keeps waiting for what was recorded before.
  void Return(cuda::Event event);

 private:
  const CudaApi& api_;
  std::mutex mutex_;
  std::vector<cuda::Event> free_;
};

}  // namespace dtrun::nccl_plugin
