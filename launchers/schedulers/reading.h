// Reads what a platform says of its hosts and collects what is wrong with it, so that one error names it all.
//
// Reading is used inside one FindHosts, by one thread. The rest are functions of their arguments; any thread.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dtrun/plugin.hpp"

namespace dtrun::schedulers {

inline constexpr int kMaxHosts = 65536;  // of a job, as core's
inline constexpr int kMaxSlots = 4096;   // that a host may have
inline constexpr int kMaxPort = 65535;

class Reading {
 public:
  explicit Reading(const sdk::HostsQuery& query) : query_(query) {}

  // The first of the variables that is set and not empty, else the first.
  std::string FirstSet(const std::vector<std::string>& names) const;
  // As FirstSet. Throws DTRUN_NOT_FOUND, with the next step, where none is set: the platform is not there.
  std::string Sign(const std::vector<std::string>& names, const std::string& next_step) const;

  // Nothing: unset or empty.
  std::optional<std::string> Find(const std::string& name) const;
  // Required ones. What is missing or malformed becomes a problem, and a stand-in returns.
  std::string Text(const std::string& name);
  int Number(const std::string& name, int least, int most = kAny);
  // Optional ones.
  std::optional<int> MaybeNumber(const std::string& name, int least, int most = kAny);

  void Fail(std::string problem) { problems_.push_back(std::move(problem)); }
  // Two variables that must agree and do not.
  void Disagree(const std::string& one, const std::string& other);
  // A number that must be equal to `expected`, when the variable is set.
  void Expect(const std::string& name, int expected, const std::string& because);

  // The text of the file that the required variable names; empty when it cannot be read, which is a problem.
  std::string FileOf(const std::string& name);

  // Throws all problems, if there are any.
  void End() const;

 private:
  static constexpr int kAny = std::numeric_limits<int>::max();

  const sdk::HostsQuery& query_;
  std::vector<std::string> problems_;
};

// A number of digits only; nothing: it is none, or too large.
std::optional<int> NumberOf(std::string_view text);
// Words between blanks, and lines without their ends; none is empty.
std::vector<std::string> WordsOf(const std::string& text);
std::vector<std::string> LinesOf(const std::string& text);
// A regular file of at most 16 MiB. Throws DTRUN_SYSTEM, with the path and what the system says.
std::string ReadFile(const std::string& path);
// Whether a resolver may be asked for it: letters, digits, '.', '-' and '_', and no '-' in front.
bool IsHostName(std::string_view name);

// A list in which a host stands once for each of its slots, or with their number. Hosts keep the order in
// which they come first.
class SlotList {
 public:
  void Add(const std::string& host, int slots);
  std::vector<sdk::AllocatedHost> Take() { return std::move(hosts_); }

 private:
  std::vector<sdk::AllocatedHost> hosts_;
  std::unordered_map<std::string, std::size_t> index_;
};
// Checks names, each once, slots, and that there are 1 to kMaxHosts. `source`: the variable that led to them.
void CheckHosts(const std::vector<sdk::AllocatedHost>& hosts, const std::string& source, Reading& reading);

// A host for each slot, one in a line of the file that `name` names, as its first word.
std::vector<sdk::AllocatedHost> HostPerLine(Reading& reading, const std::string& name);

// The allocation of a batch script: dtrun is started once, on the first of these hosts.
sdk::Allocation OnceFor(std::vector<sdk::AllocatedHost> hosts, const std::string& evidence,
                        const std::string& sharing);

// One command for each host: `before`, the host's name, `after`, what is to run. `trial`: the same with a
// harmless one.
std::vector<sdk::ConnectCommand> OneEach(const sdk::ConnectQuery& query,
                                         const std::vector<std::string>& before,
                                         const std::vector<std::string>& after = {});

// Compressed lists: of hosts, "node[01-03,07],gpu-[a,b][1-2]-ib", as Slurm and Flux write them, and of counts
// per host, "2(x3),1". Grammar as in Slurm's hostlist.c, srun(1) (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE)
// and Flux's RFC 29. Malformed ones throw sdk::Failure with what is wrong. Names in order, none twice; the
// last bracket runs fastest; a range keeps the zeros of its lower end.
std::vector<std::string> ExpandNodelist(std::string_view text);

// One count per host.
std::vector<int> ExpandCounts(std::string_view text);
// The inverse: {2, 2, 2, 1} is "2(x3),1".
std::string CompressCounts(const std::vector<int>& counts);

// What SageMaker says of a training job's hosts in JSON (resource_config.cc): SM_HOSTS of the training
// toolkit, and resourceconfig.json ("How Amazon SageMaker Provides Training Information").
// ["algo-1","algo-2"]. Nothing: the text is not a list of strings in JSON.
std::optional<std::vector<std::string>> ReadHostList(const std::string& text);

struct ResourceConfig {
  std::string current_host;
  std::vector<std::string> hosts;
};
// Members beside these two are passed by. Nothing: the text is not an object in JSON that has both.
std::optional<ResourceConfig> ReadResourceConfig(const std::string& text);

}  // namespace dtrun::schedulers
