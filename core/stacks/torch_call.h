// Whom a Python thread waits for in a call of torch.distributed: the arguments of the call are in its frame.
//
// Reads CPython's objects in another process and trusts none of them. One object per process that is read: it
// keeps what it has found. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/stacks/frame.h"
#include "core/stacks/memory.h"
#include "core/stacks/python_layout.h"

namespace dtrun::stacks {

class TorchCalls {
 public:
  // The ranks of the world that can end the wait: the members of the call's group, the sender of a receive or
  // the receiver of a send. Unset: it is in no such call, or the group is torch's default.
  std::optional<std::vector<int>> AwaitedIn(const Memory& memory, const PythonLayout& layout,
                                            const std::vector<Frame>& frames);

 private:
  // The indices of two variables of a frame; -1: it has none.
  struct Variables {
    int group = -1, peer = -1;
  };
  const Variables& VariablesOf(const Memory& memory, const PythonLayout& layout, const Frame& frame);
  std::vector<int> MembersOf(const Memory& memory, const PythonLayout& layout, std::uint64_t globals,
                             std::uint64_t group);

  std::map<std::uint64_t, Variables> variables_;    // by code
  std::uint64_t globals_ = 0, ranks_by_group_ = 0;  // of torch's module; its dict
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<int>> members_;  // by dict and its size
};

}  // namespace dtrun::stacks
