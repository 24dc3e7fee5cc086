// NCCL's allreduce on its own communicator, as in a program without dtrun.
//
// Uses the NCCL and CUDA runtime that are loaded in the process: dtrun's plugin has opened them. Errors are
// exceptions. One thread.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "plugins/cuda/cuda_abi.h"
#include "plugins/nccl/nccl_abi.h"

namespace dtrun::gpu_check {

namespace nccl = nccl_plugin::nccl;

// A library that is already loaded, else the loader's choice.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const int how : {RTLD_NOLOAD, 0}) {
      for (const char* const name : names) {
        if (image_ == nullptr) image_ = dlopen(name, RTLD_NOW | RTLD_LOCAL | how);
      }
    }
    if (image_ == nullptr) throw std::runtime_error(std::string("cannot open ") + *names.begin());
  }
  template <class Function>
  void Find(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(dlsym(image_, name));
    if (out == nullptr) throw std::runtime_error(std::string("no ") + name + " in the library");
  }

 private:
  void* image_ = nullptr;
};

class BareNccl {
 public:
  // All ranks call this; `share` distributes rank 0's bytes. `blocking` is NCCL's default.
  BareNccl(int rank, int size, bool blocking, const std::function<void(void*, std::size_t)>& share) {
    const Library library{"libnccl.so.2"};
    nccl::Result (*get_unique_id)(nccl::UniqueId*);
    nccl::Result (*init)(nccl::Comm*, int, nccl::UniqueId, int, nccl::Config*);
    library.Find("ncclGetUniqueId", get_unique_id);
    library.Find("ncclCommInitRankConfig", init);
    library.Find("ncclCommGetAsyncError", get_async_error_);
    library.Find("ncclGetErrorString", text_);
    library.Find("ncclAllReduce", all_reduce_);
    library.Find("ncclCommAbort", abort_);
    nccl::UniqueId id{};
    if (rank == 0) Check(get_unique_id(&id), "ncclGetUniqueId");
    share(&id, sizeof id);
    nccl::Config config;
    if (!blocking) config.blocking = 0;
    Check(Settle(init(&comm_, size, id, rank, &config)), "ncclCommInitRankConfig");
  }
  // All operations have ended, so the abort only frees memory.
  ~BareNccl() { (void)abort_(comm_); }
  BareNccl(const BareNccl&) = delete;
  BareNccl& operator=(const BareNccl&) = delete;

  // Sums floats. A non-blocking communicator may still be launching when this returns.
  void AllReduce(const void* send, void* recv, std::size_t count, nccl::Reduction how, void* stream) {
    nccl::Result result = all_reduce_(send, recv, count, nccl::kFloat32, how, comm_, stream);
    if (result == nccl::kInProgress) result = Settle(result);
    Check(result, "ncclAllReduce");
  }

 private:
  nccl::Result Settle(nccl::Result state) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (state == nccl::kInProgress) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("NCCL was in progress for 30 s");
      std::this_thread::yield();
      if (const nccl::Result asked = get_async_error_(comm_, &state); asked != nccl::kSuccess) return asked;
    }
    return state;
  }
  void Check(nccl::Result result, const char* what) const {
    if (result != nccl::kSuccess) throw std::runtime_error(std::string(what) + ": " + text_(result));
  }

  nccl::Comm comm_ = nullptr;
  nccl::Result (*get_async_error_)(nccl::Comm, nccl::Result*) = nullptr;
  nccl::Result (*abort_)(nccl::Comm) = nullptr;
  nccl::Result (*all_reduce_)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, nccl::Comm,
                              nccl::CudaStream) = nullptr;
  const char* (*text_)(nccl::Result) = nullptr;
};

}  // namespace dtrun::gpu_check
