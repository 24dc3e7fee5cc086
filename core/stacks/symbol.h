// Finds the address of a symbol in a shared object of another process, by reading that process's memory. It
// opens no file, so it does not depend on paths, mount namespaces or disks.
//
// Pure except for the reads; any thread that may block.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

// The address of the exported symbol in the ELF object mapped at `base`; 0: not found.
std::uint64_t FindSymbol(const Memory& memory, std::uint64_t base, std::string_view name);

}  // namespace dtrun::stacks
