#include "cuda_program.h"

#include <dlfcn.h>

#include <stdexcept>

namespace dtrun::nccl_test {
namespace {

void* Open(const std::string& library) {
  void* const image = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (image == nullptr) throw std::runtime_error(dlerror());
  return image;
}

void Check(cuda::Error error, const char* doing) {
  if (error == cuda::kSuccess) return;
  throw std::runtime_error(std::string("CUDA cannot ") + doing + ": error " + std::to_string(error));
}

}  // namespace

CudaProgram::CudaProgram(const std::string& library) : image_(Open(library)) {}

template <class Function>
Function* CudaProgram::Find(const char* name) const {
  void* const symbol = dlsym(image_, name);
  if (symbol == nullptr) throw std::runtime_error(std::string("the CUDA runtime has no ") + name);
  return reinterpret_cast<Function*>(symbol);
}

void CudaProgram::Use(int device) const { Check(Find<int(int)>("cudaSetDevice")(device), "use a device"); }

void* CudaProgram::Allocate(std::size_t bytes) const {
  void* memory = nullptr;
  Check(Find<int(void**, std::size_t)>("cudaMalloc")(&memory, bytes), "allocate");
  return memory;
}

void CudaProgram::Free(void* memory) const { Check(Find<int(void*)>("cudaFree")(memory), "free memory"); }

void* CudaProgram::MakeStream() const {
  void* stream = nullptr;
  Check(Find<int(void**, unsigned)>("cudaStreamCreateWithFlags")(&stream, cuda::kStreamNonBlocking),
        "make a stream");
  return stream;
}

void CudaProgram::Destroy(void* stream) const {
  Check(Find<int(void*)>("cudaStreamDestroy")(stream), "destroy a stream");
}

void CudaProgram::Copy(void* to, const void* from, std::size_t bytes, void* stream) const {
  Check(Find<int(void*, const void*, std::size_t, int, void*)>("cudaMemcpyAsync")(to, from, bytes,
                                                                                  cuda::kCopyDefault, stream),
        "copy");
}

void CudaProgram::Synchronize(void* stream) const {
  Check(Find<int(void*)>("cudaStreamSynchronize")(stream), "wait for a stream");
}

void CudaProgram::BeginCapture(void* stream, int mode) const {
  Check(Find<int(void*, int)>("cudaStreamBeginCapture")(stream, mode), "capture a stream");
}

std::unique_ptr<CudaProgram::Graph> CudaProgram::EndCapture(void* stream) const {
  void* graph = nullptr;
  const cuda::Error ended = Find<int(void*, void**)>("cudaStreamEndCapture")(stream, &graph);
  if (ended == cuda::kCaptureInvalid) return nullptr;
  Check(ended, "end a capture");
  void* executable = nullptr;
  Check(Find<int(void**, void*, unsigned long long)>("cudaGraphInstantiateWithFlags")(&executable, graph, 0),
        "instantiate a graph");
  Check(Find<int(void*)>("cudaGraphDestroy")(graph), "destroy a graph");
  return std::make_unique<Graph>(*this, executable);
}

CudaProgram::Graph::~Graph() { program_.Find<int(void*)>("cudaGraphExecDestroy")(executable_); }

void CudaProgram::Graph::Launch(void* stream) const {
  Check(program_.Find<int(void*, void*)>("cudaGraphLaunch")(executable_, stream), "launch a graph");
}

}  // namespace dtrun::nccl_test
