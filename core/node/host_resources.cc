#include "core/node/host_resources.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "core/base/port_user.h"
#include "core/base/text.h"
#include "core/contract/call_now.h"
#include "core/contract/environment.h"
#include "core/node/inheritance.h"
#include "core/process/process.h"
#include "core/process/rank_fifo.h"
#include "core/store/connection.h"

namespace dtrun::node {
namespace {

// A call of a plugin that is overdue within this time is worth waiting for.
constexpr std::chrono::seconds kSoon{5};

// A file that exists on the root's host may be missing on this one.
Status CheckFiles(const std::vector<plan::Process>& processes) {
  const std::string* last = nullptr;
  for (const plan::Process& process : processes) {
    if (last != nullptr && process.cwd == *last) continue;
    last = &process.cwd;
    struct stat info {};
    const bool there = ::stat(process.cwd.c_str(), &info) == 0;
    if (there && !S_ISDIR(info.st_mode)) {
      return Error::Of(DTRUN_INVALID_ARGUMENT, "the working directory '{}' is not a folder; change job.cwd",
                       process.cwd);
    }
    if (there && ::access(process.cwd.c_str(), X_OK) == 0) continue;
    const int number = errno;
    return Error{
        DTRUN_NOT_FOUND,
        Error::System(fmt::format("cannot enter the working directory '{}'", process.cwd), number).text +
            "; create it or change job.cwd"};
  }
  if (processes.empty()) return {};
  const auto plugin = processes[0].env.find(contract::kBackendPath);
  if (plugin == processes[0].env.end() || ::access(plugin->second.c_str(), R_OK) == 0) return {};
  const int number = errno;
  return Error{
      DTRUN_NOT_FOUND,
      Error::System(fmt::format("cannot read the backend plugin '{}'", plugin->second), number).text +
          "; install the same dtrun on every host"};
}

// Whether the agent serves torch's store, as torchrun tells its workers.
bool ServesTorchStore(const std::vector<plan::Process>& processes) {
  if (processes.empty()) return false;
  const auto served = processes[0].env.find("TORCHELASTIC_USE_AGENT_STORE");
  return served != processes[0].env.end() && served->second == "True";
}

// The loopback addresses at which ranks look for their store, if all ranks are on this host and look nowhere
// else. Empty: not known.
std::vector<std::string> LoopbackOf(const protocol::Prepare& prepare) {
  int ranks = 0;
  for (const plan::Process& process : prepare.processes) ranks += process.rank_count;
  const auto address = prepare.processes[0].env.find("MASTER_ADDR");
  if (ranks != prepare.world_size || address == prepare.processes[0].env.end()) return {};
  if (address->second == "localhost") return {"127.0.0.1", "::1"};
  in_addr v4{};
  const bool loopback =
      address->second == "::1" ||
      (::inet_pton(AF_INET, address->second.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
  return loopback ? std::vector{address->second} : std::vector<std::string>();
}

// The sockets that torch's store listens on.
Result<std::vector<UniqueFd>> ListenersOf(process::HeldPort& port,
                                          const std::vector<std::string>& addresses) {
  std::vector<UniqueFd> listeners;
  std::optional<Error> failure;
  for (const std::string& address : addresses) {
    Result<UniqueFd> socket = port.At(address);
    if (socket) listeners.push_back(*std::move(socket));
    if (!socket) failure = socket.error();  // one of several may have an address family that this host lacks
  }
  if (listeners.empty() && failure) return *std::move(failure);
  if (listeners.empty()) listeners.push_back(port.Release());
  return listeners;
}

// Compares the process's filesystem user, which its sockets carry.
bool ActsAs(pid_t pid, uid_t user) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream words(line.substr(4));
    uid_t real = 0, effective = 0, saved = 0, files = 0;
    return (words >> real >> effective >> saved >> files) && files == user;
  }
  return false;
}

// The users of the job's processes, plus root, which may act for any user. A rank may have switched to
// another user.
class JobUsers {
 public:
  bool Has(uid_t user) {
    if (user == ::geteuid() || user == 0) return true;
    // Limits how often repeated connections cause reads of /proc.
    constexpr std::chrono::milliseconds kPause{100};
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(strangers_, [&](const auto& one) { return now - one.second > kPause; });
    if (strangers_.contains(user)) return false;
    const bool ours =
        std::ranges::any_of(process::Descendants(::getpid()),
                            [&](const process::Process& process) { return ActsAs(process.pid, user); });
    if (!ours) strangers_[user] = now;
    return ours;
  }

 private:
  std::map<uid_t, std::chrono::steady_clock::time_point> strangers_;  // user -> when it was seen
};

// Ranks may open several connections each; other clients must not use up all descriptors.
std::size_t MostClients(int world_size) {
  const std::size_t wanted = 1024 + 16 * static_cast<std::size_t>(world_size);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2);
}

process::Ending EndingOf(int status) {
  process::Ending ending;
  if (WIFEXITED(status)) ending.code = WEXITSTATUS(status);
  if (!WIFSIGNALED(status)) return ending;
  ending.signal = WTERMSIG(status);
  ending.core_dumped = WCOREDUMP(status);
  return ending;
}

}  // namespace

Result<std::unique_ptr<HostResources>> HostResources::Take(asio::io_context& loop,
                                                           const LocalOptions& options,
                                                           const protocol::Prepare& prepare,
                                                           std::span<char> buffer, const Events& events,
                                                           protocol::Prepared* prepared) {
  if (Status files = CheckFiles(prepare.processes); !files) return files.error();
  int ranks = 0;
  for (const plan::Process& process : prepare.processes) ranks += process.rank_count;
  if (Status files = AllowsOpenFiles(ranks); !files) return files.error();
  std::unique_ptr<HostResources> held(new HostResources());
  if (Status ports = held->HoldPorts(loop, prepare, events, prepared); !ports) return ports.error();
  Result<contract::RecorderMapping> recorder = contract::RecorderMapping::Create(prepare.world_size);
  if (!recorder) return recorder.error();
  held->recorder_.emplace(*std::move(recorder));
  prepared->recorder = held->recorder_->Path();
  const std::filesystem::path socket = options.socket_dir / "store";
  auto listener = store::Listener::Listen(loop, socket, options.serve);
  if (!listener) return listener.error();
  held->listener_ = *std::move(listener);
  prepared->store = socket.string();
  auto giver = store::Listener::Listen(
      loop, options.socket_dir / contract::kRecorderSocket,
      [fd = held->recorder_->fd()](store::Socket rank) { store::SendDescriptor(rank.native_handle(), fd); });
  if (!giver) return giver.error();
  held->recorder_giver_ = *std::move(giver);
  for (const plan::Process& process : prepare.processes) {
    for (int i = 0; i < process.rank_count; ++i) held->ranks_.push_back(process.rank + i);
    if (Status opened = held->OpenPipes(loop, options, process, buffer, events); !opened)
      return opened.error();
  }
  return held;
}

HostResources::~HostResources() {
  for (const auto& pipe : pipes_) pipe->Drop();
}

Status HostResources::HoldPorts(asio::io_context& loop, const protocol::Prepare& prepare,
                                const Events& events, protocol::Prepared* prepared) {
  if (prepare.master_port >= 0) {
    Result<process::HeldPort> port = process::HeldPort::Hold(prepare.master_port);
    if (!port) {
      Error error = port.error();
      if (error.code == DTRUN_BUSY) error.text += ", or leave it unset, and dtrun chooses one";
      error.text.insert(0, prepare.master_port_place);
      return error;
    }
    prepared->master_port = port->number();
    if (ServesTorchStore(prepare.processes)) {
      const std::vector<std::string> loopback = LoopbackOf(prepare);
      Result<std::vector<UniqueFd>> listeners = ListenersOf(*port, loopback);
      if (!listeners) return listeners.error();
      std::function<bool(uid_t)> admits;
      if (!loopback.empty()) admits = [users = JobUsers()](uid_t user) mutable { return users.Has(user); };
      auto store = store::TorchServer::Serve(loop, *std::move(listeners),
                                             {MostClients(prepare.world_size), admits, events.said});
      if (!store) return store.error();
      torch_store_ = *std::move(store);
      store_port_.emplace(*std::move(port));
    } else {
      port_.emplace(*std::move(port));
    }
  }
  for (const int rank : prepare.task_ranks) {
    Result<process::HeldPort> port = process::HeldPort::Hold(0);
    if (!port) return port.error();
    task_ports_.push_back(*std::move(port));
    prepared->task_ports.emplace_back(rank, task_ports_.back().number());
  }
  return {};
}

Status HostResources::OpenPipes(asio::io_context& loop, const LocalOptions& options,
                                const plan::Process& process, std::span<char> buffer, const Events& events) {
  const auto add = [&](Result<UniqueFd> end, process::OutputPipe::Printed printed, output::Stream stream,
                       process::OutputGate* gate) -> Status {
    if (!end) return end.error();
    pipes_.push_back(std::make_shared<process::OutputPipe>(loop, *std::move(end), stream, buffer,
                                                           std::move(printed), gate));
    return {};
  };
  for (int i = 0; i < process.rank_count; ++i) {
    const int rank = process.rank + i, local_rank = process.local_rank + i;
    if (process.env.contains(contract::kTrace)) {
      const auto wrote = [traced = events.traced, rank](output::Stream, std::string_view bytes) {
        if (!bytes.empty()) traced(rank, bytes);
      };
      Status added = add(process::MakeKeptFifo(options.socket_dir / contract::TracePipe(local_rank)), wrote,
                         output::Stream::kOut, options.gate);
      if (!added) return added;
    }
    if (!process.env.contains(contract::kRankOutputs)) continue;
    for (const output::Stream stream : {output::Stream::kOut, output::Stream::kErr}) {
      const auto printed = [events, rank](output::Stream from, std::string_view bytes) {
        events.printed(rank, from, bytes);
      };
      Status added =
          add(process::MakeRankFifo(options.socket_dir, local_rank, stream), printed, stream, options.gate);
      if (!added) return added;
    }
    const auto ended = [events, rank](output::Stream, std::string_view bytes) {
      // The program that ends its ranks has a reason, says it and exits with an error; dtrun waits for that.
      const auto end = process::ReadEnd(bytes);
      if (end && end->asked == 0) events.ended({rank, end->pid, EndingOf(end->status)});
    };
    Status added =
        add(process::MakeEndFifo(options.socket_dir, local_rank), ended, output::Stream::kOut, nullptr);
    if (!added) return added;
  }
  return {};
}

void HostResources::Enter(const std::vector<contract::Window>& windows) const {
  for (const contract::Window& window : windows) contract::Enter(recorder_memory(), ranks_, window);
}

std::vector<std::string> HostResources::WhoElseListens() const {
  if (!port_) return {};
  std::vector<std::string> lines;
  const std::vector<process::Process> own = process::Descendants(::getpid());
  for (const PortUser& user : ListenersOn(port_->number())) {
    if (user.pid != 0 && std::ranges::find(own, user.pid, &process::Process::pid) != own.end()) continue;
    lines.push_back(fmt::format(
        "dtrun: MASTER_PORT {} is held for rank 0, but {}, which is not part of this job, listens on it too "
        "(with SO_REUSEADDR); end it, or set another job.master_port",
        port_->number(), user.text));
  }
  return lines;
}

void HostResources::AddRecorded(std::vector<verdict::RankDoing>& ranks,
                                const std::vector<std::uint64_t>& before) const {
  const contract::RecorderMemory& memory = recorder_memory();
  for (verdict::RankDoing& doing : ranks) {
    if (doing.rank >= memory.ranks) continue;
    const contract::Overdue overdue = contract::MembersOverdue(memory, doing.rank, kSoon);
    doing.plugin = Printable(overdue.members);
    doing.due_soon = overdue.soon;
    const auto rank = static_cast<std::size_t>(doing.rank);
    if (rank < before.size() && before[rank] != contract::ProgressOf(memory, doing.rank)) {
      doing.stand = stacks::Stand::kMayWait;
      doing.beside = "it has gone on since";
    }
  }
  AddCalls(ranks);
  use_.AddTo(ranks);
}

std::vector<std::uint64_t> HostResources::Progress() const {
  const contract::RecorderMemory& memory = recorder_memory();
  std::vector<std::uint64_t> all;
  for (int rank = 0; rank < memory.ranks; ++rank) all.push_back(contract::ProgressOf(memory, rank));
  return all;
}

void HostResources::AddCalls(std::vector<verdict::RankDoing>& ranks) const {
  const contract::RecorderMemory& memory = recorder_memory();
  for (verdict::RankDoing& doing : ranks) {
    if (doing.rank >= memory.ranks) continue;
    doing.groups = contract::GroupsOf(memory, doing.rank);
    auto now = contract::CallOf(memory, doing.rank);
    if (!now || (doing.call && !now->call.under_way && doing.call->under_way)) continue;
    if (now->call.under_way) doing.awaited = std::move(now->awaited);
    doing.call = std::move(now->call);
  }
}

void HostResources::WatchPipes() {
  for (const auto& pipe : pipes_) pipe->Watch();
}

void HostResources::FinishPipes() {
  for (const auto& pipe : pipes_) pipe->Finish();
}

void HostResources::Close() {
  listener_.reset();
  recorder_giver_.reset();
  port_.reset();
  torch_store_.reset();
  store_port_.reset();
}

}  // namespace dtrun::node
