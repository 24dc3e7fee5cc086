// Faults that the kernel logs: the address at which a process crashed that neither printed a stack nor left a
// core file.
//
// x86 kernels write a line to /dev/kmsg for a fault that no handler takes (arch/x86/mm/fault.c,
// show_signal_msg; arch/x86/kernel/traps.c; mm/memory.c, print_vma_addr), unless debug.exception-trace is 0.
// Reading it needs CAP_SYSLOG where kernel.dmesg_restrict is 1, and the process ids of the host. Does not
// block; one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/fd.h"

namespace dtrun::stacks {

struct LoggedFault {
  std::string module;                   // file name of the code: "train"
  std::uint64_t begin = 0, size = 0;    // the mapping that it is in
  std::uint64_t address = 0;            // of the instruction
  std::optional<std::uint64_t> offset;  // of the instruction in the file; none: a kernel before 6.10
};

// The fault of process `pid` in a record of /dev/kmsg; nullopt: it is of something else.
std::optional<LoggedFault> FaultIn(std::string_view record, pid_t pid);

// The address of the instruction in `program`, as its symbols count. nullopt: it is in another file.
std::optional<std::uint64_t> AddressIn(const std::filesystem::path& program, const LoggedFault& fault);

class KernelLog {
 public:
  // Records from now on.
  KernelLog();
  // The fault of process `pid` among the records that were not read yet. nullopt: none, or no right to read.
  std::optional<LoggedFault> FaultOf(pid_t pid);

 private:
  UniqueFd records_;
};

}  // namespace dtrun::stacks
