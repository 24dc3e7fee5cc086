// A fuzz target as one function. fuzz_replay has all of them, by name; a libFuzzer program has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrun::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

// Adds a target to those of fuzz_replay; returns true. Before main only.
bool Register(const char* name, Target target);

}  // namespace dtrun::fuzz

#ifdef DTRUN_FUZZ_REPLAY
#define DTRUN_FUZZ_TARGET(name)                                        \
  int try_##name(const std::uint8_t*, std::size_t);                    \
  const bool registered = ::dtrun::fuzz::Register(#name, &try_##name); \
  int try_##name
#else
#define DTRUN_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#endif
