#include "core/node/pmix_process.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include "core/node/inheritance.h"
#include "core/pmi/pmix_program.h"
#include "core/process/process.h"

namespace dtrun::node {
namespace {

constexpr int kMostLines = 20;
constexpr std::size_t kLongestReason = 1000;

}  // namespace

Result<std::unique_ptr<PmixProcess>> PmixProcess::Start(asio::io_context& loop,
                                                        const std::filesystem::path& folder, UniqueFd agent,
                                                        std::span<char> buffer, Events events) {
  static_assert(pmi::kPmixDescriptor == process::kExtraDescriptor);
  process::SpawnRequest request;
  request.argv = {pmi::PmixProgram().string(), pmi::kPmixServe};
  request.env = OwnEnvironment();
  request.cwd = folder.string();
  request.extra_fd = agent.get();
  Result<process::Child> child = process::Spawn(request);
  if (!child) {
    return MakeError(child.error().code,
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
  if (bytes.empty() && !line_.empty()) bytes = "\n";  // end of the stream
  for (const char byte : bytes) {
    if (byte != '\n') {
      if (line_.size() < kLongestReason) line_ += byte;
      continue;
    }
    if (!line_.empty() && lines_++ < kMostLines) events_.printed(line_);
    line_.clear();
  }
}

}  // namespace dtrun::node
