#include "core/node/rank_lines.h"

#include <fmt/format.h>

#include "core/hosts/this_machine.h"
#include "core/process/process.h"
#include "core/verdict/verdict.h"

namespace dtrun::node {

std::string DamageLine(const contract::Damage& damage) {
  return fmt::format(
      "dtrun: warning: {} (on {}): its calls are no longer compared; next: look for a write "
      "past "
      "the end of a buffer in rank {}",
      damage.text, hosts::HostName(), damage.rank);
}

std::string StoppedLine(int rank, pid_t pid, int signal) {
  return fmt::format(
      "dtrun: rank {} on {} was stopped by {}: the job waits for it; `kill -CONT {}` there resumes it", rank,
      hosts::HostName(), process::SignalName(signal), pid);
}

std::string NotForwardedLine(int signal, const std::vector<int>& ranks) {
  return fmt::format("dtrun: {} was not forwarded to {} on {}: without a handler, it would end them",
                     process::SignalName(signal), verdict::FoldRanks(ranks), hosts::HostName());
}

std::string ForeignProcLine() {
  return "dtrun: warning: /proc belongs to another PID namespace: processes that ranks leave behind cannot "
         "be "
         "found; next: mount one for this namespace, `mount -t proc proc /proc`";
}

}  // namespace dtrun::node
