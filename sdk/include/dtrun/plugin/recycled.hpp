// dtrun/plugin/recycled.hpp - memory that a thread uses again: a blocking call allocates nothing.
//
// Part of the SDK's queue. A base of the class; any thread.
#pragma once

#include <memory>
#include <new>

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  namespace internal {

  // A thread keeps the memory of the last T that it deleted for its next one.
  template <class T>
  class Recycled {
   public:
    static void* operator new(std::size_t bytes) {
      void* const kept = kept_.release();
      return kept != nullptr ? kept : ::operator new(bytes);
    }
    static void operator delete(void* memory) { kept_.reset(memory); }

   private:
    struct Free {
      void operator()(void* memory) const { ::operator delete(memory); }
    };
    inline static thread_local std::unique_ptr<void, Free> kept_;
  };

  }  // namespace internal

}  // namespace v1
}  // namespace dtrun::sdk
