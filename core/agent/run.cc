#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/agent/agent.h"
#include "core/agent/audit.h"
#include "core/agent/port.h"
#include "core/agent/process.h"
#include "core/agent/run_dir.h"
#include "core/agent/supervisor.h"
#include "core/agent/verdict.h"
#include "core/output/output.h"
#include "core/plan/dialect.h"
#include "core/store/server.h"

namespace dtrun::agent {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::map<std::string, std::string>;

constexpr int kUserError = 2;

// Three descriptors per rank and its connections to the store: raised as far as allowed.
// Returns the soft limit there was, for the ranks.
std::optional<rlim_t> RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return before;
}

output::Prefix PrefixOf(const std::string& name) {
  if (name == "rank") return output::Prefix::kRank;
  return name == "none" ? output::Prefix::kNone : output::Prefix::kAuto;
}

std::string_view WithoutNewline(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// What was settled at run time, without the secret.
std::string RuntimeJson(const Tokens& tokens) {
  nlohmann::ordered_json json;
  for (const auto& [token, value] : tokens) {
    if (token == plan::kTokenJobKey) continue;
    std::string name = token;
    for (const std::string_view bracket : {"⟦", "⟧"}) {
      if (const auto at = name.find(bracket); at != std::string::npos) name.erase(at, bracket.size());
    }
    json[name] = value;
  }
  return json.dump(2) + "\n";
}

Status WriteRecord(const RunDir& dir, const plan::Plan& plan, const Tokens& tokens) {
  std::map<std::string, std::string> files = plan.record;
  files["plan.json"] = plan::ToJson(plan);
  files["runtime.json"] = RuntimeJson(tokens);
  for (const auto& [name, content] : files) {
    if (Status written = dir.Write(name, content); !written) {
      return Error{DTRUN_SYSTEM, written.error().text + "; set logs.dir to a folder with room to write"};
    }
  }
  return {};
}

// Everything is written, unless the user stops waiting for a reader that takes nothing.
void DrainConsole(output::Console& console, Lifeline& lifeline) {
  constexpr int kPatienceMs = 250;
  for (;;) {
    const auto begin = Clock::now();
    if (console.Drain(kPatienceMs)) return;
    if (Clock::now() - begin < std::chrono::milliseconds(kPatienceMs)) return;  // nobody reads any more
    switch (lifeline.Next()) {
      case Lifeline::kGuardGone:
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
      case SIGQUIT: return;
      case SIGTSTP: lifeline.Stopped(); break;
      default: break;
    }
  }
}

class Runner {
 public:
  Runner(const RunRequest& request, Lifeline& lifeline, output::Console& console)
      : request_(request), lifeline_(lifeline), console_(console) {}

  // Asio throws when the system is out of descriptors or memory.
  Result<int> Run() {
    try {
      return RunAndRecord();
    } catch (const std::exception& exception) {
      KillDescendants(std::chrono::seconds(10));
      return Error{DTRUN_INTERNAL,
                   fmt::format("the agent failed: {}; look at `ulimit -a`", exception.what())};
    }
  }

 private:
  Result<int> RunAndRecord() {
    const plan::Plan& plan = request_.plan;
    Result<RunDir> dir = RunDir::Create(plan.log_dir, plan.job, std::chrono::system_clock::now());
    if (!dir) return dir.error();
    const std::string run_dir = dir->path().string();
    lifeline_.LastWords(fmt::format("  job '{}', logs: {}\n", plan.job, run_dir));
    if (!dir->note().empty()) Say("dtrun: " + dir->note());
    Result<Facts> facts = Supervise(*dir, run_dir);
    if (!facts) {
      Record(*dir, NotStartedJson(plan.job, facts.error().text));
      return facts.error();
    }
    Record(*dir, VerdictJson(*facts));
    Say(WithoutNewline(VerdictText(*facts)));
    return ExitCode(*facts);
  }

  Result<Facts> Supervise(const RunDir& dir, const std::string& run_dir) {
    const plan::Plan& plan = request_.plan;
    Result<HeldPort> port = HeldPort::Hold(plan.master_port);
    if (!port) return port.error();
    Result<comm::BookMapping> recorder = comm::BookMapping::Create(plan.world_size());
    if (!recorder) return recorder.error();
    const std::filesystem::path socket = lifeline_.runtime_dir() / "store";
    const std::string key = store::NewJobKey();
    Tokens tokens{{plan::kTokenPort, std::to_string(port->number())},
                  {plan::kTokenRunDir, run_dir},
                  {plan::kTokenStore, socket.string()},
                  {plan::kTokenJobKey, key},
                  {plan::kTokenRecorder, recorder->Path()},
                  {plan::kTokenConsole, console_.terminal() ? "terminal" : "plain"}};
    std::vector<HeldPort> task_ports;
    for (const int rank : plan::TaskPortsUsed(plan)) {
      Result<HeldPort> task_port = HeldPort::Hold(0);
      if (!task_port) return task_port.error();
      tokens.emplace(plan::TaskPortToken(rank), std::to_string(task_port->number()));
      task_ports.push_back(*std::move(task_port));
    }
    if (Status written = WriteRecord(dir, plan, tokens); !written) return written.error();

    Job job{plan::Resolve(plan, tokens),
            run_dir,
            {},
            STDIN_FILENO,
            RaiseOpenFiles(),
            [this](const std::string& line) { Say(line); }};
    for (const plan::Process& process : plan.processes) {
      auto output = output::RankOutput::Open(dir.path(), process.rank, plan.world_size(),
                                             PrefixOf(plan.log_prefix), console_);
      if (!output) return output.error();
      job.outputs.push_back(*std::move(output));
    }
    if (request_.header) Say(WithoutNewline(request_.header(job.plan, run_dir)));

    boost::asio::io_context loop;
    auto supervisor = Supervisor::Create(loop, lifeline_, std::move(job));
    Supervisor& events = *supervisor;
    auto store = store::Server::Listen(
        loop, socket, key, 0,
        {[&](int rank) { events.Joined(rank); }, [&](int rank) { events.Left(rank); },
         [&](int rank, int peer, const std::string& what) { events.Reported(rank, peer, what); }});
    if (!store) return store.error();
    Audit audit(loop, recorder->book(), [this](const std::string& line) { Say(line); });
    Result<Facts> ended = supervisor->Run();
    if (ended && ExitCode(*ended) != 0) WriteCalls(dir, audit.History());
    return ended;
  }

  void Say(std::string_view text) { console_.Line(output::Stream::kErr, text); }

  // What the ranks called last, when they called anything.
  void WriteCalls(const RunDir& dir, const std::string& history) {
    if (history.empty()) return;
    if (Status written = dir.Write("calls.txt", history); !written) Say("dtrun: " + written.error().text);
  }

  void Record(const RunDir& dir, const std::string& verdict) {
    if (Status written = dir.Write("verdict.json", verdict); !written) Say("dtrun: " + written.error().text);
  }

  const RunRequest& request_;
  Lifeline& lifeline_;
  output::Console& console_;
};

}  // namespace

int Run(const RunRequest& request, Lifeline& lifeline) {
  ::signal(SIGPIPE, SIG_IGN);  // readers of our output may go away; ranks get the default back
  auto console = output::Console::Open(STDOUT_FILENO, STDERR_FILENO, lifeline.runtime_dir());
  if (console == nullptr) {
    fmt::print(stderr, "dtrun: cannot start a thread for the console; raise `ulimit -u`\n");
    return kUserError;
  }
  Result<int> code = Runner(request, lifeline, *console).Run();
  if (!code) console->Line(output::Stream::kErr, "dtrun: " + code.error().text);
  DrainConsole(*console, lifeline);
  return code ? *code : kUserError;
}

}  // namespace dtrun::agent
