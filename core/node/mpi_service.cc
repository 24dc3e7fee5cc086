#include "core/node/mpi_service.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>

#include "core/hosts/this_machine.h"
#include "core/node/inheritance.h"
#include "core/pmi/pmix_program.h"
#include "core/process/process.h"
#include "core/process/runtime_dir.h"
#include "core/process/spawn.h"

namespace dtrun::node {
namespace {

// A signal that stops the whole job also stops the agent within this time.
constexpr std::chrono::seconds kServerStopsAlone{1};

constexpr int kMostLines = 20;  // that the server prints

}  // namespace

static_assert(pmi::kRankDescriptor == process::kExtraDescriptor);
static_assert(pmi::kPmixDescriptor == process::kExtraDescriptor);

Result<std::unique_ptr<PmixProcess>> PmixProcess::Start(asio::io_context& loop,
                                                        const std::filesystem::path& folder, UniqueFd agent,
                                                        std::span<char> buffer, Events events) {
  process::SpawnRequest request;
  request.argv = {pmi::PmixProgram().string(), pmi::kPmixServe};
  request.env = OwnEnvironment();
  request.cwd = folder.string();
  request.extra_fd = agent.get();
  Result<process::Child> child = process::Spawn(request);
  if (!child) {
    return Error::Of(child.error().code,
                     "cannot start the PMIx server of this host: {}; install dtrun "
                     "again, or start the job with mpirun",
                     child.error().text);
  }
  std::unique_ptr<PmixProcess> made(new PmixProcess(child->pid, std::move(events)));
  PmixProcess* const self = made.get();
  made->process_ = std::make_shared<process::ChildProcess>(
      loop, *std::move(child), buffer, [self](output::Stream, std::string_view bytes) { self->Print(bytes); },
      [self](const process::Ending&) { self->Look(); });
  made->process_->Watch();
  return made;
}

PmixProcess::~PmixProcess() { process_->Abandon(); }

std::string PmixProcess::End() const {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return {};
  if (!condemned_.empty()) return condemned_;
  if (info.si_code == CLD_EXITED) return fmt::format("exited with code {}", info.si_status);
  return fmt::format("died of signal {} ({}{})", info.si_status, process::SignalName(info.si_status),
                     info.si_code == CLD_DUMPED ? ", core dumped" : "");
}

bool PmixProcess::Resume() {
  const auto process = process::ReadProcess(pid_);
  if (!process || process->state != 'T') return false;
  process_->Tell(SIGCONT);
  return true;
}

void PmixProcess::Look() {
  if (told_) return;
  const std::string how = End();
  if (how.empty()) return;
  told_ = true;
  events_.died(how);
}

void PmixProcess::Condemn(const std::string& why) {
  if (condemned_.empty() && End().empty()) condemned_ = why;
  process_->Tell(SIGKILL);
}

void PmixProcess::Print(std::string_view bytes) {
  const auto tell = [this](const std::string& line) {
    if (told_lines_++ < kMostLines) events_.printed(line);
  };
  bytes.empty() ? lines_.Finish(tell) : lines_.Feed(bytes, tell);
}

Status MpiService::Begin(const pmi::Job& job) {
  End();
  if (job.kind == pmi::Kind::kNone) return {};
  pmi::Events events;
  events.offered = [this](pmi::Part part) { emit_(protocol::Offered{std::move(part)}); };
  events.started = [this](int rank) { emit_(protocol::MpiStarted{rank}); };
  events.finished = [this](int rank) { emit_(protocol::MpiFinished{rank}); };
  events.aborted = [this](int rank, int code, const std::string& message) {
    emit_(protocol::MpiAborted{rank, code, message});
  };
  events.broke = [this](int rank, const std::string& why) {
    emit_(protocol::MpiAborted{rank, 1, why, true});
  };
  events.said = [this](int rank, const std::string& text) {
    emit_(protocol::Output{rank, output::Stream::kErr, text});
  };
  events.lost = [this](const std::string& why) {
    if (process_ != nullptr) process_->Condemn(why);
  };
  pmi::Folders folders;
  if (job.kind == pmi::Kind::kPmix) {
    Result<std::filesystem::path> memory = process::MakeMemoryDir(dir_);
    if (!memory) return memory.error();
    folders = {dir_ / "mpi", *std::move(memory)};
  }
  server_ =
      pmi::MakeServer(job.kind, loop_, std::move(folders), std::move(events), [this] { return StartPmix(); });
  return server_->Begin(job);
}

Result<UniqueFd> MpiService::StartPmix() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error::System("make a socket pair for the PMIx server", errno);
  UniqueFd ours(ends[0]), theirs(ends[1]);
  PmixProcess::Events events;
  events.died = [this](const std::string& how) {
    died_ = how;
    asio::post(loop_, [this, ended = ended_] {
      if (!*ended) TellDeath();
    });
  };
  events.printed = [this](const std::string& line) {
    emit_(protocol::Said{"dtrun: the PMIx server printed: " + line});
  };
  Result<std::unique_ptr<PmixProcess>> process =
      PmixProcess::Start(loop_, dir_, std::move(theirs), buffer_, std::move(events));
  if (!process) return process.error();
  process_ = *std::move(process);
  return ours;
}

Result<pmi::Admission> MpiService::Admit(const plan::Process& process) {
  if (server_ == nullptr) return pmi::Admission();
  for (int rank = process.rank + process.rank_count - 1; rank > process.rank; --rank) {
    if (Result<pmi::Admission> other = Admit(rank); !other) return other;
  }
  return Admit(process.rank);
}

Result<pmi::Admission> MpiService::Admit(int rank) {
  Result<pmi::Admission> admission = server_->Admit(rank);
  if (admission || process_ == nullptr) return admission;
  const std::string how = process_->End();
  if (how.empty()) return admission;
  return Error::Of(
      DTRUN_INTERNAL,
      "the PMIx server of host '{}' {} during startup; see its output above, if any; install dtrun "
      "again there, or start the job with mpirun",
      hosts::HostName(), how);
}

void MpiService::Complete(const protocol::Exchanged& exchanged) {
  if (server_ == nullptr) return;
  if (exchanged.error.empty()) return server_->Complete(exchanged.exchange, exchanged.bytes);
  server_->Complete(exchanged.exchange, Error{DTRUN_ABORTED, exchanged.error});
}

void MpiService::Look() {
  if (server_ != nullptr) server_->Look();
  if (process_ != nullptr) process_->Look();
  TellDeath();
}

void MpiService::TellDeath() {
  if (const std::string how = std::exchange(died_, {}); !how.empty()) emit_(protocol::MpiServerLost{how});
}

void MpiService::OnStopped(pid_t child, int signal) {
  if (process_ == nullptr || process_->pid() != child) return;
  resume_.After(kServerStopsAlone, [this, child, signal] {
    if (process_ == nullptr || process_->pid() != child || !process_->Resume()) return;
    emit_(protocol::Said{fmt::format(
        "dtrun: the PMIx server of host {} (pid {}) was stopped by {}, but not the rest of its job: "
        "resumed it",
        hosts::HostName(), child, process::SignalName(signal))});
  });
}

void MpiService::End() {
  resume_.Cancel();
  died_.clear();
  server_ = nullptr;
  process_ = nullptr;
}

std::vector<pid_t> MpiService::servers() const {
  return process_ == nullptr ? std::vector<pid_t>() : std::vector<pid_t>{process_->pid()};
}

}  // namespace dtrun::node
