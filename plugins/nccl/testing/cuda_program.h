// What a CUDA program does beside communicating: memory, streams, graphs; over the runtime in a file, by its
// own names. Throws std::runtime_error where a call fails. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "plugins/cuda/cuda_abi.h"

namespace dtrun::nccl_test {

class CudaProgram {
 public:
  explicit CudaProgram(const std::string& library);

  // What was captured, ready to be launched.
  class Graph {
   public:
    Graph(const CudaProgram& program, void* executable) : program_(program), executable_(executable) {}
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    void Launch(void* stream) const;

   private:
    const CudaProgram& program_;
    void* const executable_;
  };

  void Use(int device) const;
  void* Allocate(std::size_t bytes) const;
  void Free(void* memory) const;
  void* MakeStream() const;
  void Destroy(void* stream) const;
  void Copy(void* to, const void* from, std::size_t bytes, void* stream) const;
  void Synchronize(void* stream) const;
  void BeginCapture(void* stream, int mode = cuda::kCaptureThreadLocal) const;
  // Null where something has invalidated the capture.
  std::unique_ptr<Graph> EndCapture(void* stream) const;

 private:
  template <class Function>
  Function* Find(const char* name) const;
  void* const image_;
};

}  // namespace dtrun::nccl_test
