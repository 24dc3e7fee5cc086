// Something that performs operations among ranks: libdtrun, or a library that it is compared with.
//
// One in each rank's process, used by its main thread. Failures are exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tools/bench/program/values.h"

namespace dtrun::bench {

// The library has no such operation, or not for this type.
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

  // One operation, blocking. Throws Unsupported before anything has begun.
  virtual void Run(const Call& call) = 0;
  virtual void Barrier() = 0;

  // Memory that the library moves fastest; 64-byte aligned.
  virtual void* Allocate(std::uint64_t bytes);
  virtual void Free(void* memory);
};

// A number that the launch tells every rank (core/contract/environment.h). Throws where no launch did.
int RankVariable(const char* name);

// Joins the other ranks by `make`, which gets the arguments behind the first one, the verb's socket;
// then obeys the verb until it goes away. Returns the exit code of a rank's program.
int ServeAsRank(int argc, char** argv, Peer* (*make)(int argc, char** argv));

}  // namespace dtrun::bench
