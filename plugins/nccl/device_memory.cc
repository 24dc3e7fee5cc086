#include "device_memory.h"

#include <string>

namespace dtrun::nccl_plugin {

DeviceBuffer::DeviceBuffer(const CudaApi& api, std::size_t bytes, const std::string& place) : api_(&api) {
  const cuda::BesideCaptures relaxed(api);
  api.Check(api.allocate(&data_, bytes), "allocate " + std::to_string(bytes) + " bytes on " + place);
}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(data_, other.data_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  const cuda::BesideCaptures relaxed(*api_);
  api_->Handled(api_->release(data_));
}

OwnStream::OwnStream(const CudaApi& api) : api_(api) {
  api.Check(api.stream_create_with_flags(&stream_, cuda::kStreamNonBlocking), "create a stream");
}

OwnStream::~OwnStream() { api_.stream_destroy(stream_); }

EventPool::~EventPool() {
  for (const cuda::Event event : free_) api_.event_destroy(event);
}

cuda::Event EventPool::Take() {
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

void EventPool::Return(cuda::Event event) {
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

}  // namespace dtrun::nccl_plugin
