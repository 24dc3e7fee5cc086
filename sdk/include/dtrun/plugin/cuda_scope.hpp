// dtrun/plugin/cuda_scope.hpp - a CUDA context on a thread that drives a vendor's library.
//
// Not part of plugin.hpp. Libraries that move memory of CUDA call its driver on whatever thread drives them,
// and fail or crash where that thread has no context; a plugin's own threads have none (D9). The driver is
// the one that the process has loaded. Not yet run on a GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  namespace internal {

  // Four calls, for which cuda.h is not needed.
  struct CudaDriver {
    static constexpr int kContext = 1;        // CU_POINTER_ATTRIBUTE_CONTEXT
    static constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL

    explicit CudaDriver(const SharedLibrary& library)
        : get_attribute(library["cuPointerGetAttribute"]),
          retain(library["cuDevicePrimaryCtxRetain"]),
          push(library["cuCtxPushCurrent_v2"]),
          pop(library["cuCtxPopCurrent_v2"]) {}

    int (*get_attribute)(void*, int, std::uintptr_t);
    int (*retain)(void**, int);
    int (*push)(void*);
    int (*pop)(void**);

    // Null while the process has none.
    static const CudaDriver* Get() {
      static std::atomic<const CudaDriver*> known{nullptr};
      if (const CudaDriver* const driver = known.load(std::memory_order_acquire)) return driver;
      const std::optional<SharedLibrary> loaded = SharedLibrary::FindLoaded({"libcuda.so.1"});
      if (!loaded) return nullptr;
      static const CudaDriver driver(*loaded);
      known.store(&driver, std::memory_order_release);
      return &driver;
    }
  };

  }  // namespace internal

  // Ends with the scope, which restores what was current. One thread.
  class CudaScope {
   public:
    CudaScope() = default;
    explicit CudaScope(void* context) { Enter(context); }
    ~CudaScope() { Leave(); }
    CudaScope(const CudaScope&) = delete;
    CudaScope& operator=(const CudaScope&) = delete;

    // The context of CUDA's memory; null: it is other memory, or the process has no driver.
    static void* ContextOf(const void* memory) {
      using internal::CudaDriver;
      const CudaDriver* const driver = memory == nullptr ? nullptr : CudaDriver::Get();
      if (driver == nullptr) return nullptr;
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      void* context = nullptr;
      const int found = driver->get_attribute(&context, CudaDriver::kContext, address);
      if (found == 0 && context != nullptr) return context;
      // Memory of a pool belongs to a device and to no context. The device's own is held until the process
      // ends.
      int device = -1;
      if (driver->get_attribute(&device, CudaDriver::kDeviceOrdinal, address) != 0 || device < 0)
        return nullptr;
      return driver->retain(&context, device) == 0 ? context : nullptr;
    }

    // Instead of the one before. Null: keeps that.
    void Enter(void* context) {
      if (context == nullptr || context == current_) return;
      Leave();
      if (internal::CudaDriver::Get()->push(context) == 0) current_ = context;
    }
    void Leave() {
      if (std::exchange(current_, nullptr) == nullptr) return;
      void* popped = nullptr;
      internal::CudaDriver::Get()->pop(&popped);
    }

   private:
    void* current_ = nullptr;
  };

}  // namespace v1
}  // namespace dtrun::sdk
