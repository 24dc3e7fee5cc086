#include "core/verdict/hint.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

#include "core/process/process.h"
#include "core/verdict/traceback.h"

namespace dtrun::verdict {
namespace {

constexpr char kLessMemory[] =
    "use less memory per rank or fewer ranks per host, or raise the limit (job.memory, --mem of Slurm, the "
    "container's)";

// A launcher that starts one process per host does not set a rank number.
bool MissesItsRank(const RankFacts& rank) {
  const std::string error = ErrorIn(rank.tail);
  return error == "KeyError: 'RANK'" || error == "KeyError: 'LOCAL_RANK'";
}

// Ranks inherit the limit. The kernel kills silently if it is also the hard limit.
std::string OfTime() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return {};
  return fmt::format(
      "`ulimit -t` allows each process {} s of processor time, after which the kernel kills it; otherwise ",
      limit.rlim_max);
}

}  // namespace

std::string Hint(const RankFacts& rank) {
  if (rank.abort) return {};
  const process::Ending& ending = *rank.ending;
  if (ending.stopped_by != 0) {
    return fmt::format("dtrun did not send {}: find out what did; `kill -CONT` resumes a stopped process",
                       process::SignalName(ending.stopped_by));
  }
  if (ending.out_of_memory) return kLessMemory;
  if (ending.forwarded) {
    return fmt::format("dtrun was sent {} and forwarded it: the rank blocked it at first and had no handler",
                       process::SignalName(ending.signal));
  }
  switch (ending.signal) {
    case 0: break;
    case SIGKILL:
      return OfTime() +
             "dtrun did not send this signal: look in `dmesg` for the out-of-memory killer, or find out what "
             "did";
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
      return std::string(ending.core_dumped
                             ? "open the core file with `coredumpctl gdb` or `gdb PROGRAM core`"
                             : "run again after `ulimit -c unlimited` and open the core file with gdb") +
             "; PYTHONFAULTHANDLER=1 has Python print its stack";
    case SIGBUS: return "look at `df -h /dev/shm` and the disks: a mapped file may have had no room to grow";
    case SIGILL: return "the program was built for another processor; build it on this machine";
    case SIGPIPE: return "it wrote to a closed pipe or socket: look at its last output";
    case SIGXCPU:
      return "it used up the processor time that `ulimit -t` allows a process: raise that where dtrun is "
             "started, or in the scheduler's job";
    case SIGXFSZ: return "a file grew beyond `ulimit -f`: raise that where dtrun is started";
    default:
      return fmt::format("dtrun did not send {}: find out what did", process::SignalName(ending.signal));
  }
  if (SaysMemoryError(rank.tail)) return kLessMemory;
  if (MissesItsRank(rank)) {
    return "RANK is set where each rank has a process: launcher.name = \"per-process\" (the default), "
           "torchrun, "
           "mpirun or slurm. per-node, and processes = \"host\", start one process per host with NODE_RANK, "
           "and "
           "that process starts its ranks";
  }
  if (ending.signal == 0 && ending.code == 127) {
    return "127 is a shell's code for a command that was not found: look at its last output and PATH";
  }
  if (ending.signal == 0 && ending.code == 126) {
    return "126 is a shell's code for a command that is not executable: look at its last output";
  }
  if (ending.signal == 0 && ending.code > 128 && ending.code <= 128 + SIGRTMAX) {
    return fmt::format("{} is a shell's code for a command killed by {}", ending.code,
                       process::SignalName(ending.code - 128));
  }
  return {};
}

}  // namespace dtrun::verdict
