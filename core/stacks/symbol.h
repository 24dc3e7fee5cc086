// Where a shared object of another process has a symbol, read from that process's own memory: no file is
// opened, so nothing depends on paths, mount namespaces or disks.
//
// Pure but for the reads; any thread, where waiting is allowed.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

// The address of the exported symbol in the ELF object that is mapped at `base`; 0: it has none.
std::uint64_t FindSymbol(const Memory& memory, std::uint64_t base, std::string_view name);

}  // namespace dtrun::stacks
