// Two devices with memory that the test defines, carried by the fake backend: for the communicator's own
// tests.
//
// One at a time per process. For the test's thread; the communicator may query it from any thread.
#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "core/comm/devices.h"
#include "core/comm/testing/fake_backend.h"

namespace dtrun::comm::testing {

class FakeDevices final : public Devices {
 public:
  FakeDevices() {
    current_ = this;
    DTRUN_INIT(table_);
    table_.kind = DTRUN_DEVICE_CUDA;
    table_.count = [](dtrun_instance*, std::int32_t* out, dtrun_error*) -> dtrun_status {
      *out = 2;
      return DTRUN_OK;
    };
    table_.memory_of = [](dtrun_instance*, const void* pointer, dtrun_memory* out,
                          dtrun_error*) -> dtrun_status {
      const auto found = current_->memory.find(pointer);
      out->device_kind = found == current_->memory.end() ? DTRUN_DEVICE_HOST : DTRUN_DEVICE_CUDA;
      out->device_index = found == current_->memory.end() ? -1 : found->second;
      return DTRUN_OK;
    };
    table_.stream_capturing = [](dtrun_instance*, const dtrun_stream*, std::int32_t* out,
                                 dtrun_error*) -> dtrun_status {
      *out = current_->capturing ? 1 : 0;
      return DTRUN_OK;
    };
    table_.mem_alloc = [](dtrun_instance*, const dtrun_mem_params* params, void** out,
                          dtrun_error*) -> dtrun_status {
      *out = std::malloc(params->bytes);
      ++current_->allocated;
      return DTRUN_OK;
    };
    table_.mem_free = [](dtrun_instance*, const dtrun_mem_params*, void* block) {
      --current_->allocated;
      std::free(block);
    };
    device_ = {&table_, nullptr, "cuda"};
  }
  ~FakeDevices() override { current_ = nullptr; }

  Result<const Device*> Plugin(std::int32_t kind) override {
    if (kind == DTRUN_DEVICE_CUDA) return &device_;
    return Error{DTRUN_NOT_FOUND, "no such plugin"};
  }
  Result<Carrier> CarrierOf(std::int32_t kind) override {
    if (kind == DTRUN_DEVICE_CUDA) return Carrier{carrier, nullptr, "fake"};
    return Error{DTRUN_UNSUPPORTED, "nothing carries it"};
  }

  std::map<const void*, int> memory;  // of devices, by pointer
  std::atomic<bool> capturing = false;
  int allocated = 0;
  dtrun_backend carrier = Fake::FullTable();

 private:
  static inline FakeDevices* current_ = nullptr;
  dtrun_device table_;
  Device device_;
};

}  // namespace dtrun::comm::testing
