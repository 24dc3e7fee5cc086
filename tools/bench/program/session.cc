#include "tools/bench/program/session.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>

#include "core/base/text.h"

namespace dtrun::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 120s;  // limit for an answer; operations have their own, shorter deadlines
constexpr auto kFarewell = 10s;   // time for a layer to end by itself
constexpr std::size_t kOutputKept = 64 << 10;

std::vector<std::string> EnvironmentOfLayers() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  // Allow root in a container to start MPI programs.
  out.emplace_back("OMPI_ALLOW_RUN_AS_ROOT=1");
  out.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  return out;
}

bool EndsTheRun(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

Session::~Session() {
  for (auto& layer : layers_) layer->ranks.clear();  // closing the stream ends a rank
  for (auto& layer : layers_) Stop(*layer);
}

Status Session::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder_ / "socket").string();
  if (path.size() >= sizeof address.sun_path) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("socket path '{}' is too long", path)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  listener_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_ ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    return Error::System(fmt::format("listen on '{}'", path), errno);
  }
  return {};
}

Result<Session::Running*> Session::Start(const Layer& layer) {
  process::SpawnRequest request;
  request.argv = layer.argv;
  request.env = EnvironmentOfLayers();
  std::error_code failure;
  request.cwd = std::filesystem::current_path(failure).string();
  if (failure) return Error::System("find the working directory", failure.value());
  Result<process::Child> child = process::Spawn(request);
  if (!child) return std::move(child).error();
  layers_.push_back(std::make_unique<Running>());
  Running& running = *layers_.back();
  running.child = *std::move(child);
  if (Status met = Meet(running); !met) {
    Stop(running);
    return met.error().code == DTRUN_REMOTE_FAILURE ? Error{DTRUN_REMOTE_FAILURE, CauseOf(running)}
                                                    : met.error();
  }
  if (!running.library.empty()) running.description += ", " + running.library;
  return &running;
}

Status Session::Meet(Running& layer) {
  strangers_.clear();
  const auto deadline = Clock::now() + kPatience;
  while (layer.ranks.size() < static_cast<std::size_t>(ranks_)) {
    if (Status turned = Turn(nullptr, deadline); !turned) return turned;
    if (Status admitted = Admit(layer); !admitted) return admitted;
    if (layer.ended) return Error{DTRUN_REMOTE_FAILURE, "it ended"};
  }
  return {};
}

Status Session::Admit(Running& layer) {
  for (auto stranger = strangers_.begin(); stranger != strangers_.end();) {
    const auto line = stranger->Next();
    if (!line) {
      ++stranger;
      continue;
    }
    if (constexpr std::string_view kLibrary = "library "; line->starts_with(kLibrary)) {
      layer.library = line->substr(kLibrary.size());
      stranger = strangers_.erase(stranger);
      continue;
    }
    std::istringstream words(*line);
    std::string hello, description;
    int rank = -1, ranks = 0;
    double joining = 0;
    words >> hello >> rank >> ranks >> joining >> std::ws;
    std::getline(words, description);
    if (hello != "hello" || !words || ranks != ranks_ || rank < 0 || rank >= ranks_ ||
        !layer.ranks.emplace(rank, std::move(*stranger)).second) {
      return Error{DTRUN_INTERNAL, fmt::format("a rank said '{}', expected one of {} ranks", *line, ranks_)};
    }
    if (rank == 0) layer.description = description;
    layer.joining = std::max(layer.joining, joining);
    stranger = strangers_.erase(stranger);
  }
  return {};
}

Result<std::vector<std::string>> Session::Ask(Running& layer, const std::string& line) {
  for (auto& [rank, channel] : layer.ranks) {
    if (!channel.Send(line)) layer.ended = true;
  }
  std::vector<std::string> answers(layer.ranks.size());
  std::size_t missing = answers.size();
  const auto deadline = Clock::now() + kPatience;
  while (missing > 0) {
    for (auto& [rank, channel] : layer.ranks) {
      auto answer = channel.Next();
      if (!answer) continue;
      if (answer->rfind("error ", 0) == 0) return Error{DTRUN_INTERNAL, answer->substr(6)};
      answers[static_cast<std::size_t>(rank)] = *std::move(answer);
      --missing;
    }
    if (missing == 0) break;
    if (layer.ended) {
      // Its last output may still be in transit.
      Stop(layer);
      return Error{DTRUN_REMOTE_FAILURE, CauseOf(layer)};
    }
    if (Status turned = Turn(&layer, deadline); !turned) return turned.error();
  }
  return answers;
}

Status Session::Turn(Running* asked, Clock::time_point deadline) {
  std::vector<pollfd> polls = {{lifeline_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const auto& layer : layers_) {
    polls.push_back({layer->ended ? -1 : layer->child.handle.get(), POLLIN, 0});
    polls.push_back({layer->child.out ? layer->child.out.get() : -1, POLLIN, 0});
    polls.push_back({layer->child.err ? layer->child.err.get() : -1, POLLIN, 0});
  }
  std::vector<Channel*> channels;
  if (asked != nullptr) {
    for (auto& [rank, channel] : asked->ranks) channels.push_back(&channel);
  }
  for (Channel& stranger : strangers_) channels.push_back(&stranger);
  const std::size_t first = polls.size();
  for (const Channel* channel : channels) polls.push_back({channel->descriptor(), POLLIN, 0});

  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) {
    return Error{DTRUN_TIMEOUT,
                 fmt::format("no answer within {} s", std::chrono::seconds(kPatience).count())};
  }
  if (::poll(polls.data(), polls.size(), static_cast<int>(left.count()) + 1) < 0) {
    if (errno == EINTR) return {};
    return Error::System("wait for the layers", errno);
  }
  if (polls[0].revents != 0) Hear();
  if (signal_ != 0) return Error{DTRUN_ABORTED, "interrupted"};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const pollfd* three = &polls[2 + 3 * i];
    if (three[1].revents != 0 || three[2].revents != 0) Drain(*layers_[i]);
    if (three[0].revents != 0) layers_[i]->ended = true;
  }
  const std::size_t asked_count = channels.size() - strangers_.size();
  for (std::size_t i = channels.size(); i-- > 0;) {
    if (polls[first + i].revents == 0 || channels[i]->Fill()) continue;
    if (i < asked_count) {
      asked->ended = true;
    } else {
      strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i - asked_count));
    }
  }
  return polls[1].revents != 0 ? Accept() : Status();
}

Status Session::Accept() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (fd) {
    strangers_.emplace_back(std::move(fd));
  } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    return Error::System("accept a rank's connection", errno);
  }
  return {};
}

void Session::Hear() {
  for (;;) {
    const int what = lifeline_.Next();
    if (what == process::Lifeline::kNothing) return;
    if (what == process::Lifeline::kGuardGone) {
      signal_ = SIGKILL;
      return;
    }
    if (EndsTheRun(what)) signal_ = what;
    if (what != SIGTSTP && what != SIGCONT) continue;
    for (const auto& layer : layers_) ::kill(layer->child.pid, what);
    if (what == SIGTSTP) lifeline_.Stopped();
  }
}

void Session::Drain(Running& layer) {
  for (UniqueFd* fd : {&layer.child.out, &layer.child.err}) {
    char buffer[4096];
    while (*fd) {
      const ssize_t n = ::read(fd->get(), buffer, sizeof buffer);
      if (n > 0) {
        layer.output.append(buffer, static_cast<std::size_t>(n));
        if (layer.output.size() > 2 * kOutputKept) layer.output.erase(0, layer.output.size() - kOutputKept);
      } else if (n == 0) {
        fd->Reset();
      } else if (errno != EINTR) {
        break;
      }
    }
  }
}

void Session::Stop(Running& layer) {
  layer.ranks.clear();
  if (!layer.child.handle) return;
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    if (signal != 0 || signal_ != 0) ::kill(layer.child.pid, signal != 0 ? signal : SIGTERM);
    const auto deadline = Clock::now() + kFarewell;
    bool gone = false;
    while (!gone && Clock::now() < deadline) {
      pollfd polls[3] = {{layer.child.handle.get(), POLLIN, 0},
                         {layer.child.out ? layer.child.out.get() : -1, POLLIN, 0},
                         {layer.child.err ? layer.child.err.get() : -1, POLLIN, 0}};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      ::poll(polls, 3, static_cast<int>(left.count()) + 1);
      Drain(layer);
      gone = polls[0].revents != 0;
    }
    if (gone) break;
  }
  ::waitpid(layer.child.pid, nullptr, WNOHANG);  // a process that SIGKILL cannot end is left to the agent
  layer.child.handle.Reset();
  layer.ended = true;
}

std::string Session::CauseOf(const Running& layer) const {
  std::string_view last = "it ended without a word";
  for (const std::string_view line : LinesOf(layer.output)) {
    if (line.starts_with("bench: ") || line.starts_with("dtrun: ")) return std::string(line.substr(7));
    if (line.find_first_not_of(" -=\t\r") != line.npos) last = line;
  }
  return std::string(Trim(last));
}

}  // namespace dtrun::bench
