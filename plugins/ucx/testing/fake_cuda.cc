#include "fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace {

struct Block {
  std::size_t bytes;
  char* alias;
};
std::mutex mutex;
std::map<const char*, Block>& Blocks() {
  static auto* const blocks = new std::map<const char*, Block>;
  return *blocks;
}
thread_local std::vector<void*> current;
char context_of_the_device;

constexpr int kContext = 1;
constexpr int kInvalid = 1;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) char* fake_cuda_alloc(std::size_t bytes) {
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  const std::lock_guard lock(mutex);
  Blocks()[static_cast<char*>(memory)] = {bytes, static_cast<char*>(alias)};
  return static_cast<char*>(memory);
}

__attribute__((visibility("default"))) char* fake_cuda_alias(const void* memory) {
  const std::lock_guard lock(mutex);
  const auto* const at = static_cast<const char*>(memory);
  const auto after = Blocks().upper_bound(at);
  if (after != Blocks().begin()) {
    const auto& [begin, block] = *std::prev(after);
    if (at < begin + block.bytes) return block.alias + (at - begin);
  }
  return const_cast<char*>(at);
}

__attribute__((visibility("default"))) void* fake_cuda_current() {
  return current.empty() ? nullptr : current.back();
}

__attribute__((visibility("default"))) int cuPointerGetAttribute(void* out, int attribute,
                                                                 std::uintptr_t at) {
  const auto* const memory = reinterpret_cast<const char*>(at);
  if (attribute != kContext || fake_cuda_alias(memory) == memory) return kInvalid;
  *static_cast<void**>(out) = &context_of_the_device;
  return 0;
}
__attribute__((visibility("default"))) int cuDevicePrimaryCtxRetain(void** out, int) {
  *out = &context_of_the_device;
  return 0;
}
__attribute__((visibility("default"))) int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}
__attribute__((visibility("default"))) int cuCtxPopCurrent_v2(void** out) {
  if (current.empty()) return kInvalid;
  *out = current.back();
  current.pop_back();
  return 0;
}
}
