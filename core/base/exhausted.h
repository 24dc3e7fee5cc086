// Names the ulimit to raise after memory or descriptors run out (ENOMEM, EMFILE). Any thread.
#pragma once

#include <exception>
#include <string>

namespace dtrun {

// Describes the exception and the limit to check: "out of memory; raise `ulimit -v`, which is
// 30000".
std::string Exhausted(const std::exception& thrown);

// From now on a process that cannot go on without more memory says so and exits with `code`, also where no handler
// can catch it, as in a destructor of a library. Call it first in main.
void EndWhenExhausted(int code);

// What takes the memory, for that message: "planning 1000000 ranks on 1000 hosts". One at a time; main thread.
class MemoryUser {
 public:
  explicit MemoryUser(std::string what);
  ~MemoryUser();
  MemoryUser(const MemoryUser&) = delete;
  MemoryUser& operator=(const MemoryUser&) = delete;
};

}  // namespace dtrun
