// A driver of CUDA with one device and memory that no processor can touch: for tests of the ucx backend.
//
// Linked into libcuda.so.1 of the test's folder, and into fake UCX. Any thread.
#pragma once

#include <cstddef>

extern "C" {

// Memory of the device. Ends with the process.
char* fake_cuda_alloc(std::size_t bytes);
// Where the same bytes can be touched; `memory` itself when it is not the device's.
char* fake_cuda_alias(const void* memory);
// What is current on this thread; null: nothing.
void* fake_cuda_current();
}
