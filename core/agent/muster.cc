#include "core/agent/muster.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/agent/process.h"
#include "core/plan/hosts.h"
#include "core/store/server.h"

namespace dtrun::agent {
namespace {

constexpr std::chrono::seconds kProgressEvery{10};
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::seconds kLongestPause{5};
constexpr std::size_t kMostNamed = 8;
constexpr int kSshFailed = 255;
constexpr int kUserError = 2;
constexpr std::chrono::milliseconds kFarewell{300};

// For a shell that reads the words again on the other side, as ssh makes it do.
std::string ShellQuote(const std::string& word) {
  if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                              "_-./+,:=@%") == std::string::npos) {
    return word;
  }
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Whether trying again cannot help. What ssh calls by its name is decided there; else the code.
bool IsFinal(const Ending& ending, const std::string& line) {
  if (ending.signal != 0) return false;
  if (ending.code != kSshFailed) return true;
  constexpr std::string_view kFinal[] = {"Permission denied", "Host key verification failed",
                                         "REMOTE HOST IDENTIFICATION HAS CHANGED",
                                         "Bad owner or permissions"};
  return std::ranges::any_of(kFinal,
                             [&](std::string_view word) { return line.find(word) != std::string::npos; });
}

std::string EndText(const Ending& ending, const std::string& line) {
  if (!line.empty()) return line;
  if (ending.signal != 0) return fmt::format("the remote shell was killed by {}", SignalName(ending.signal));
  return fmt::format("the remote shell ended with code {}", ending.code);
}

std::string NextStep(const Ending& ending, const std::string& dtrun) {
  if (ending.code == 127 || ending.code == 126) {
    return fmt::format("; install dtrun there as '{}', or set cluster.dtrun to its path", dtrun);
  }
  return ending.code == kSshFailed ? "; try `ssh` to it by hand, or set cluster.remote_shell" : "";
}

}  // namespace

Muster::Muster(boost::asio::io_context& loop, UserSignals& signals, const Cluster& cluster, std::string job,
               std::set<pid_t>& pids, Say say, Sinks sinks)
    : loop_(loop),
      signals_(signals),
      cluster_(cluster),
      job_(std::move(job)),
      pids_(pids),
      say_(std::move(say)),
      sinks_(std::move(sinks)),
      key_digits_(store::NewJobKey()),
      names_(cluster.names),
      deadline_(loop),
      progress_(loop) {
  for (const std::string& name : cluster_.hosts) {
    members_.emplace_back();
    members_.back().name = name;
    members_.back().retry = std::make_unique<boost::asio::steady_timer>(loop_);
  }
}

Muster::~Muster() { *gone_ = true; }

Result<std::vector<JoinedHost>> Muster::Run() {
  if (Status listening = Listen(); !listening) return listening.error();
  signals_.Handle([this](int signal) {
    if (signal == SIGTSTP) return signals_.Stopped();
    if (signal == Lifeline::kGuardGone || UserSignals::EndsJob(signal)) interrupted_ = signal;
  });
  if (names_.empty()) {
    // The address that leads to the first host comes first; an alias of ssh's may have none.
    names_ = OwnAddresses();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::string& name = members_[i].name;
      const std::string own = AddressTowards(name.substr(name.find('@') + 1));
      if (own.empty()) continue;
      std::erase(names_, own);
      names_.insert(names_.begin(), own);
      break;
    }
    if (names_.empty()) names_.push_back("127.0.0.1");
  }
  if (cluster_.connect == Cluster::Connect::kShell) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (static_cast<int>(i) != cluster_.here) StartShell(i);
    }
  }
  deadline_.expires_after(cluster_.join_timeout);
  deadline_.async_wait([this, gone = gone_](const boost::system::error_code& error) {
    if (error || *gone) return;
    Fail({DTRUN_TIMEOUT,
          fmt::format("not all hosts have joined within cluster.join_timeout: {}", StatusLine())});
  });
  AwaitProgress();
  while (!Complete() && !failure_ && interrupted_ == 0 && loop_.run_one() > 0) {
  }
  over_ = true;
  listener_.reset();
  deadline_.cancel();
  progress_.cancel();
  for (Member& member : members_) member.retry->cancel();
  signals_.Handle({});
  if (failure_ || interrupted_ != 0) {
    for (Member& member : members_) {
      if (member.host.channel == nullptr) continue;
      const std::string why = failure_ ? failure_->text : "it was ended while its hosts were joining";
      const int code = failure_ ? kUserError : 128 + std::max(interrupted_, 0);
      member.host.channel->Send(Encode(ToAgent(Over{code, why})));
      member.host.channel->Close();
    }
    // What was queued leaves with the loop's next turns.
    const auto limit = std::chrono::steady_clock::now() + kFarewell;
    while (loop_.run_one_until(limit) > 0) {
    }
  }
  if (failure_) return *failure_;
  if (interrupted_ != 0) return Error{DTRUN_ABORTED, "the job was ended while its hosts were joining"};
  std::vector<JoinedHost> hosts;
  for (Member& member : members_) hosts.push_back(std::move(member.host));
  return hosts;
}

Status Muster::Listen() {
  Result<control::Key> made = control::Key::FromHex(key_digits_);
  control::Listener::Options options{.address = {},
                                     .port = cluster_.port,
                                     .job = job_,
                                     .key = cluster_.key ? *cluster_.key : *made,
                                     .welcome = {plan::HostName(), cluster_.lost_after}};
  auto listener = control::Listener::Listen(
      loop_, std::move(options),
      {[this](const control::Hello& hello, const std::string& from) { return Admit(hello, from); },
       [this](control::Hello hello, std::unique_ptr<control::Channel> channel) {
         OnJoined(hello, std::move(channel));
       },
       [this](const std::string& line) { say_("dtrun: " + line); }});
  if (!listener) return listener.error();
  listener_ = *std::move(listener);
  return {};
}

void Muster::StartShell(std::size_t host) {
  Member& member = members_[host];
  std::vector<std::string> argv = cluster_.remote_shell;
  argv.push_back(member.name);
  argv.push_back(ShellQuote(cluster_.dtrun));
  argv.push_back("agent");
  Result<control::Key> key = control::Key::FromHex(key_digits_);
  const Summons summons{job_,
                        names_,
                        listener_->port(),
                        *key,
                        static_cast<int>(host),
                        member.name,
                        cluster_.join_timeout,
                        cluster_.lost_after};
  auto shell = RemoteShell::Start(loop_, argv, ToLine(summons, key_digits_), pids_,
                                  {[this, host](const std::string& line) {
                                     if (!over_) members_[host].last_error = line;
                                   },
                                   [this, host, gone = gone_](const Ending& ending) {
                                     // Not from inside: the shell may have to go.
                                     boost::asio::post(loop_, [this, host, ending, gone] {
                                       if (!*gone && !over_) OnShellEnded(host, ending);
                                     });
                                   }});
  if (!shell) return Fail({shell.error().code, fmt::format("host {}: {}", member.name, shell.error().text)});
  member.host.shell = *std::move(shell);
}

void Muster::OnShellEnded(std::size_t host, const Ending& ending) {
  Member& member = members_[host];
  const std::string cause = EndText(ending, std::exchange(member.last_error, {}));
  member.host.shell.reset();
  member.last_error = cause;
  if (member.joined || IsFinal(ending, cause)) {
    return Fail({DTRUN_REMOTE_FAILURE,
                 fmt::format("host {}: {}{}", member.name, cause, NextStep(ending, cluster_.dtrun))});
  }
  member.pause = std::clamp<std::chrono::nanoseconds>(2 * member.pause, kFirstPause, kLongestPause);
  member.retry->expires_after(member.pause);
  member.retry->async_wait([this, host, gone = gone_](const boost::system::error_code& error) {
    if (!error && !*gone && !over_) StartShell(host);
  });
}

Status Muster::Admit(const control::Hello& hello, const std::string& from) {
  if (hello.host_index < 0 || hello.host_index >= static_cast<int>(members_.size())) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("host index {} is none of this job's {} hosts; number them from 0",
                             hello.host_index, members_.size())};
  }
  const Member& member = members_[static_cast<std::size_t>(hello.host_index)];
  if (hello.host_index == cluster_.here) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("host {} is the root itself; give each host its own index", hello.host_index)};
  }
  if (member.joined) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("host {} ({}) has joined already, from {}; {} gave the same index",
                             hello.host_index, member.name, member.host.channel->peer(), from)};
  }
  return {};
}

void Muster::OnJoined(const control::Hello& hello, std::unique_ptr<control::Channel> channel) {
  const auto host = static_cast<std::size_t>(hello.host_index);
  Member& member = members_[host];
  member.joined = true;
  member.host.channel = std::move(channel);
  // These outlive the muster: the channel goes on under another owner.
  auto sinks = sinks_;
  member.host.channel->Start({[this, host, gone = gone_, sinks](std::string_view message) {
                                if (*gone || over_) return sinks.on_message(host, message);
                                OnMessage(host, message);
                              },
                              [this, host, gone = gone_, sinks](const control::Loss& loss) {
                                if (*gone || over_) return sinks.on_lost(host, loss);
                                OnLost(host, loss);
                              },
                              {}});
}

void Muster::OnMessage(std::size_t host, std::string_view message) {
  Result<ToRoot> decoded = DecodeToRoot(message);
  if (!decoded) return Fail({DTRUN_INTERNAL, decoded.error().text});
  if (const auto* asked = std::get_if<Asked>(&*decoded)) {
    if (UserSignals::EndsJob(asked->signal)) interrupted_ = asked->signal;
    return;
  }
  const auto* introduction = std::get_if<Introduction>(&*decoded);
  if (introduction == nullptr) return;
  Member& member = members_[host];
  if (!cluster_.share_machines) {
    const std::string* twin = nullptr;
    if (cluster_.here >= 0 && introduction->machine == MachineIdentity()) {
      twin = &members_[static_cast<std::size_t>(cluster_.here)].name;
    }
    for (const Member& other : members_) {
      if (other.introduced && other.host.introduction.machine == introduction->machine) twin = &other.name;
    }
    if (twin != nullptr) {
      return Fail({DTRUN_INVALID_ARGUMENT,
                   fmt::format("hosts {} and {} are one machine ({}); list it once with more slots, or set "
                               "cluster.oversubscribe = true",
                               *twin, member.name, introduction->host_name)});
    }
  }
  member.host.introduction = *introduction;
  member.introduced = true;
}

void Muster::OnLost(std::size_t host, const control::Loss& loss) {
  Member& member = members_[host];
  if (member.host.shell != nullptr && member.host.shell->living()) {
    return Fail({DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", member.name, loss.error.text)});
  }
  // It may be started again.
  member.joined = member.introduced = false;
  member.last_error = loss.error.text;
}

void Muster::AwaitProgress() {
  progress_.expires_after(kProgressEvery);
  progress_.async_wait([this, gone = gone_](const boost::system::error_code& error) {
    if (error || *gone || over_) return;
    say_("dtrun: " + StatusLine());
    AwaitProgress();
  });
}

void Muster::Fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

bool Muster::Complete() const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (static_cast<int>(i) != cluster_.here && !members_[i].introduced) return false;
  }
  return true;
}

std::string Muster::StatusLine() const {
  std::size_t joined = 0, missing = 0;
  std::string names, last_error;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (static_cast<int>(i) == cluster_.here || member.introduced) {
      ++joined;
      continue;
    }
    if (++missing <= kMostNamed) names += (names.empty() ? "" : ", ") + member.name;
    if (!member.last_error.empty())
      last_error = fmt::format("; last error: {}: {}", member.name, member.last_error);
  }
  if (missing > kMostNamed) names += ", …";
  return fmt::format("{} of {} hosts joined; missing: {}{}", joined, members_.size(), names, last_error);
}

}  // namespace dtrun::agent
