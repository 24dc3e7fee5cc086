// Performs operations among ranks through libdtrun, or through a library for comparison.
//
// One per rank process, used by its main thread. Failures are exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tools/bench/program/values.h"

namespace dtrun::bench {

// The library lacks this operation, or lacks it for this type.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Library and version, in one line.
  virtual std::string description() const = 0;

  // Performs one operation, blocking. Throws Unsupported before anything has started.
  virtual void Run(const Call& call) = 0;
  virtual void Barrier() = 0;

  // Allocates the memory that is fastest for the library; 64-byte aligned.
  virtual void* Allocate(std::uint64_t bytes);
  virtual void Free(void* memory);
};

// A number that the launcher gives to every rank (core/contract/environment.h). Throws without a launcher.
int RankVariable(const char* name);

// Joins the other ranks through `make`, which gets the arguments after the first one (the verb's socket).
// Then executes the verb's commands until it disconnects. Returns the program's exit code.
int ServeAsRank(int argc, char** argv, Peer* (*make)(int argc, char** argv));

}  // namespace dtrun::bench
