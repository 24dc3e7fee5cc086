// Small owners of what the CUDA runtime makes. Each belongs to one object; not shared between
// threads without a lock.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
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
  DeviceBuffer(const CudaApi& api, std::size_t bytes, const std::string& place = "the device") : api_(&api) {
    const cuda::BesideCaptures relaxed(api);
    api.Check(api.allocate(&data_, bytes), "allocate " + std::to_string(bytes) + " bytes on " + place);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : api_(other.api_), data_(std::exchange(other.data_, nullptr)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ == nullptr) return;
    const cuda::BesideCaptures relaxed(*api_);
    api_->Handled(api_->release(data_));
  }

  void* data() const { return data_; }

 private:
  const CudaApi* api_ = nullptr;
  void* data_ = nullptr;
};

// A stream that does not wait for the device's default stream.
class OwnStream {
 public:
  explicit OwnStream(const CudaApi& api) : api_(api) {
    api.Check(api.stream_create_with_flags(&stream_, cuda::kStreamNonBlocking), "create a stream");
  }
  ~OwnStream() { api_.stream_destroy(stream_); }
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
  ~EventPool() {
    for (const cuda::Event event : free_) api_.event_destroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // REQUIRES that the pool's device is current.
  cuda::Event Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const cuda::Event event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cuda::Event event = nullptr;
    api_.Check(api_.event_create_with_flags(&event, cuda::kEventDisableTiming), "create an event");
    return event;
  }

  // Whatever waits on `event` keeps waiting for what was recorded before.
  void Return(cuda::Event event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  const CudaApi& api_;
  std::mutex mutex_;
  std::vector<cuda::Event> free_;
};

}  // namespace dtrun::nccl_plugin
