// flux: an instance of Flux that flux alloc or flux batch has made for the job, or the tasks of flux run.
// flux-environment(7): an initial program has FLUX_URI and asks the broker for the rest; a task has
// FLUX_JOB_ID, FLUX_JOB_NNODES and FLUX_TASK_RANK. flux exec(1) runs a command as a child of the brokers,
// without a shell, and hands its input to it.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "launchers/schedulers/reading.h"
#include "sdk/helpers/helper.h"

namespace dtrun::schedulers {
namespace {

constexpr std::size_t kMostOutput = 4 << 20;
constexpr std::chrono::seconds kPatience{5};

// What a command prints; throws where it fails or takes too long.
std::string OutputOf(std::vector<std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "`" : " ") + word;
  text += "`";
  const auto fail = [&](const std::string& how) { throw sdk::Failure(DTRUN_SYSTEM, text + " " + how); };
  const char* const path = std::getenv("PATH");
  words.front() = helpers::Find(words.front(), path == nullptr ? "" : path);
  if (words.front().empty()) fail("does not start: it is in no absolute folder of PATH");
  helpers::Answer answer =
      helpers::Ask({.command = std::move(words), .patience = kPatience, .most = kMostOutput});
  using helpers::End;
  if (answer.end == End::kNotStarted) fail(std::string("does not start: ") + std::strerror(answer.status));
  if (answer.end == End::kTooMuch) fail("printed more than 4 MiB");
  if (answer.end == End::kTooLate) fail("gave no answer in 5s");
  if (!answer.succeeded()) fail("failed");
  return std::move(answer.text);
}

std::string OneLine(const std::string& text) {
  const std::vector<std::string> lines = LinesOf(text);
  return lines.empty() ? "" : lines.front();
}

// The hosts of the broker's own instance, in the order of its ranks.
std::vector<std::string> HostsOfInstance() {
  return ExpandNodelist(OneLine(OutputOf({"flux", "getattr", "hostlist"})));
}

// A task of flux run: one per host, or it is no host's.
sdk::Allocation OfTask(Reading& reading) {
  sdk::Allocation out;
  out.evidence = "FLUX_JOB_ID";
  out.implies = {"pmi"};  // the shell's PMI server
  out.everywhere = true;
  out.max_hosts = reading.Number("FLUX_JOB_NNODES", 1, kMaxHosts);
  out.own_index = reading.Number("FLUX_TASK_RANK", 0);
  reading.Expect(
      "FLUX_JOB_SIZE", out.max_hosts,
      "FLUX_JOB_NNODES says " + std::to_string(out.max_hosts) +
          ", and dtrun starts the ranks itself; start it once per host: flux run --tasks-per-node=1 dtrun");
  if (*out.own_index >= out.max_hosts) reading.Disagree("FLUX_TASK_RANK", "FLUX_JOB_NNODES");
  out.sharing = "export it before flux run, which passes it on";
  return out;
}

class Flux final : public sdk::Launcher {
 public:
  Flux(const sdk::Host&, const sdk::Options&) {}

  sdk::Allocation FindHosts(const sdk::HostsQuery& query) override {
    Reading reading(query);
    const std::string sign =
        reading.Sign({"FLUX_JOB_ID", "FLUX_URI"}, "run dtrun from flux alloc, flux batch or flux run");
    if (sign == "FLUX_JOB_ID") {
      sdk::Allocation out = OfTask(reading);
      reading.End();
      return out;
    }
    std::vector<sdk::AllocatedHost> hosts;
    for (std::string& name : HostsOfInstance()) hosts.push_back({std::move(name)});
    return OnceFor(std::move(hosts), sign, "export it before flux batch, which passes it on");
  }

  // The ranks of brokers count the hosts of the instance, of which those asked for are some.
  std::vector<sdk::ConnectCommand> Connect(const sdk::ConnectQuery& query) override {
    if (!query.Variable("FLUX_URI"))
      throw sdk::Failure(
          DTRUN_FAILED_PRECONDITION,
          "flux exec starts processes in an instance of Flux, and FLUX_URI is unset; run dtrun "
          "from flux alloc or flux batch");
    const std::vector<std::string> all = HostsOfInstance(), hosts = query.hosts();
    std::vector<sdk::ConnectCommand> commands;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const auto found = std::find(all.begin(), all.end(), hosts[i]);
      if (found == all.end())
        throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                           "host '" + hosts[i] + "' is none of the instance's (flux getattr hostlist)");
      const std::string rank = "--rank=" + std::to_string(found - all.begin());
      sdk::ConnectCommand command;
      command.argv = {"flux", "exec", rank};
      for (std::string& word : query.argv()) command.argv.push_back(std::move(word));
      command.hosts = {i};
      command.trial = "flux exec " + rank + " hostname";
      commands.push_back(std::move(command));
    }
    return commands;
  }
};

}  // namespace
}  // namespace dtrun::schedulers

DTRUN_SDK_PLUGIN(
    dtrun::schedulers::Flux, .name = "flux", .version = DTRUN_VERSION, .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "the hosts of an instance of Flux, reached by flux exec, or the tasks of flux run")
