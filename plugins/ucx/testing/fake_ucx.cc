// The machine's UCX, as one that was built with CUDA looks from outside: it knows the memory of the fake
// device (fake_cuda.h), says that it moves it, and moves it.
//
// A libucp.so.0 between the plugin and the real one, which stays in charge of everything else. It counts what
// a plugin must not do, for the test to read. Any thread.
#include <dlfcn.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "fake_cuda.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<int> faults{0};
std::atomic<int> device_messages{0};
std::atomic<int> with_handle{0};
std::atomic<int> registered{0};
std::atomic<bool> moves_cuda{true};

std::mutex mutex;
std::set<ucp_worker_h> used;  // that have received into the device's memory

template <class Function>
Function* Real(Function*, const char* name) {
  static void* const library = dlopen(REAL_UCP, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}
#define REAL(name) Real(&(name), #name)

// The real UCX calls some of these functions too, and gets the truth.
bool ForPlugin(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libdtrun_backend_ucx") != nullptr;
}

bool OnDevice(const void* memory) { return fake_cuda_alias(memory) != memory; }

// What the real UCX gets in place of a message in memory of the device.
ucp_request_param_t Translated(const void* memory, const ucp_request_param_t& param) {
  ucp_request_param_t real = param;
  const bool said = param.memory_type == UCS_MEMORY_TYPE_CUDA;
  if (said != OnDevice(memory)) ++faults;
  if ((param.op_attr_mask & UCP_OP_ATTR_FIELD_MEMH) != 0) ++with_handle;
  if (!said) return real;
  ++device_messages;
  if (fake_cuda_current() == nullptr) ++faults;
  real.memory_type = UCS_MEMORY_TYPE_HOST;
  return real;
}

}  // namespace

EXPORTED int fake_ucx_faults() { return faults; }
EXPORTED int fake_ucx_device_messages() { return device_messages; }
EXPORTED int fake_ucx_with_handle() { return with_handle; }
EXPORTED int fake_ucx_registered() { return registered; }
EXPORTED void fake_ucx_moves_cuda(bool moves) { moves_cuda = moves; }

EXPORTED ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t* attributes) {
  const ucs_status_t status = REAL(ucp_context_query)(context, attributes);
  if (moves_cuda) attributes->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
  return status;
}

EXPORTED ucs_status_t uct_md_query(uct_md_h domain, uct_md_attr_t* attributes) {
  const ucs_status_t status = REAL(uct_md_query)(domain, attributes);
  if (ForPlugin(__builtin_return_address(0)))
    attributes->cap.detect_mem_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
  return status;
}

EXPORTED ucs_status_t uct_md_detect_memory_type(uct_md_h, const void* memory, size_t,
                                                ucs_memory_type_t* type) {
  if (!OnDevice(memory)) return UCS_ERR_INVALID_ADDR;
  *type = UCS_MEMORY_TYPE_CUDA;
  return UCS_OK;
}

EXPORTED ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h endpoint, const void* data, size_t bytes, ucp_tag_t tag,
                                           const ucp_request_param_t* param) {
  const ucp_request_param_t real = Translated(data, *param);
  return REAL(ucp_tag_send_nbx)(endpoint, fake_cuda_alias(data), bytes, tag, &real);
}

EXPORTED ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void* data, size_t bytes, ucp_tag_t tag,
                                           ucp_tag_t mask, const ucp_request_param_t* param) {
  const ucp_request_param_t real = Translated(data, *param);
  if (OnDevice(data)) {
    const std::lock_guard lock(mutex);
    used.insert(worker);
  }
  return REAL(ucp_tag_recv_nbx)(worker, fake_cuda_alias(data), bytes, tag, mask, &real);
}

// cuda_copy asks the driver here.
EXPORTED ucs_status_t ucp_worker_arm(ucp_worker_h worker) {
  {
    const std::lock_guard lock(mutex);
    if (used.contains(worker) && fake_cuda_current() == nullptr) ++faults;
  }
  return REAL(ucp_worker_arm)(worker);
}

EXPORTED void ucp_worker_destroy(ucp_worker_h worker) {
  {
    const std::lock_guard lock(mutex);
    used.erase(worker);
  }
  REAL(ucp_worker_destroy)(worker);
}

EXPORTED ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                                  ucp_mem_h* handle) {
  ucp_mem_map_params_t real = *params;
  if ((params->memory_type == UCS_MEMORY_TYPE_CUDA) != OnDevice(params->address)) ++faults;
  real.address = fake_cuda_alias(params->address);
  real.memory_type = UCS_MEMORY_TYPE_HOST;
  ++registered;
  return REAL(ucp_mem_map)(context, &real, handle);
}

EXPORTED ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h handle) {
  --registered;
  return REAL(ucp_mem_unmap)(context, handle);
}
