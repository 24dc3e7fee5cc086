#include "core/membership/remote_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/endpoint.h"
#include "core/base/number.h"
#include "core/base/visit.h"
#include "core/log/log.h"
#include "core/output/display.h"

namespace dtrun::membership {
namespace {

constexpr std::chrono::seconds kMoment{5};

}  // namespace

RemoteHost::RemoteHost(asio::io_context& loop, std::string name, std::unique_ptr<protocol::Channel> channel,
                       const Services& services,
                       std::function<void(const protocol::Introduction&)> introduced)
    : loop_(loop),
      name_(std::move(name)),
      channel_(std::move(channel)),
      services_(services),
      introduced_(std::move(introduced)),
      answer_timer_(loop),
      kill_timer_(loop) {
  relay_.emplace(loop,
                 store::Relay::Wire{{},
                                    [this](std::uint32_t client, std::string_view bytes) {
                                      Send(protocol::ClientData{client, bytes});
                                    },
                                    [this](std::uint32_t client) { Send(protocol::ClientClosed{client}); }});
  channel_->Start({[this](std::string_view message) { OnMessage(message); },
                   [this](const protocol::Loss& loss) {
                     broke_ = !lost_ && loss.error.code == DTRUN_REMOTE_FAILURE;
                     Lose(loss.error.text, loss.closed || loss.error.code != DTRUN_TIMEOUT);
                   },
                   {}});
}

void RemoteHost::Send(const protocol::ToAgent& message) {
  protocol_.Note(message);
  channel_->Send(Encode(message));
  if (protocol_.said().unanswered() != nullptr && !std::exchange(waiting_, true)) AwaitAnswer();
}

// When the limit is over, waits for another moment: while this process was stopped, time passed and answers
// arrived.
void RemoteHost::Limit(Timer& timer, std::chrono::nanoseconds limit, const bool& due,
                       std::function<void()> late) {
  timer.After(limit, [&timer, limit, &due, late = std::move(late)] {
    if (!due) return;
    timer.After(std::min<std::chrono::nanoseconds>(limit, kMoment), [&due, late] {
      if (due) late();
    });
  });
}

void RemoteHost::AwaitAnswer() {
  Limit(answer_timer_, services_.answer_limit, waiting_, [this] {
    Drop(fmt::format("it has not answered {} within {}", protocol_.said().unanswered(),
                     FormatDuration(services_.answer_limit)),
         fmt::format("find out what `dtrun agent` on {} waits for (`eu-stack -p PID`)", name_));
  });
}

void RemoteHost::Do(const protocol::Command& command) {
  if (const auto* prepare = std::get_if<protocol::Prepare>(&command)) {
    protocol::Prepare whole = *prepare;
    whole.environment = services_.environment;
    return Send(protocol::ToAgent(std::move(whole)));
  }
  Visit([this](const auto& given) { Send(protocol::ToAgent(given)); }, command);
  if (std::holds_alternative<protocol::Kill>(command)) AwaitEnd();
}

void RemoteHost::AwaitEnd() {
  if (std::exchange(killing_, true)) return;
  Limit(kill_timer_, services_.kill_limit, killing_, [this] {
    Drop(fmt::format("it did not end its ranks within {} of being told to kill them",
                     FormatDuration(services_.kill_limit)),
         fmt::format("look on {} for processes that cannot be killed (state D in `ps -eo pid,stat,cmd`)",
                     name_));
  });
}

void RemoteHost::HasEnded() {
  killing_ = false;
  kill_timer_.Cancel();
}

void RemoteHost::OnMessage(std::string_view message) {
  if (lost_) return;
  Result<protocol::ToRoot> decoded = protocol::DecodeToRoot(message);
  const Result<bool> valid = decoded ? protocol_.Check(*decoded) : Result<bool>(decoded.error());
  if (!valid) {
    return Drop(
        valid.error().text,
        fmt::format("install the same dtrun on {} as here; if it is, find out which user runs an agent there",
                    name_));
  }
  if (protocol_.said().unanswered() == nullptr && std::exchange(waiting_, false)) answer_timer_.Cancel();
  if (!*valid) return;
  Visit(
      [this]<class T>(T& seen) {
        if constexpr (std::is_same_v<T, protocol::ClientOpened>) {
          OpenClient(seen.client);
        } else if constexpr (std::is_same_v<T, protocol::ClientData>) {
          relay_->Data(seen.client, seen.bytes);
        } else if constexpr (std::is_same_v<T, protocol::ClientClosed>) {
          relay_->Close(seen.client);
        } else if constexpr (std::is_same_v<T, protocol::Introduction>) {
          if (const auto introduced = std::exchange(introduced_, {})) introduced(seen);
        } else if constexpr (std::is_same_v<T, protocol::PreflightAnswered>) {
          if (auto done = std::exchange(preflight_done_, {})) done(std::move(seen.answer));
        } else if constexpr (std::is_same_v<T, protocol::Logged>) {
          log::PassOn(output::TamedMessage(seen.line));
        } else if constexpr (std::is_same_v<T, protocol::Lost>) {
          broke_ = !seen.refused;
          Lose(seen.why, seen.agent_died);
        } else {
          if constexpr (std::is_same_v<T, protocol::Gone> || std::is_same_v<T, protocol::Refused>) HasEnded();
          Emit(seen);
        }
      },
      *decoded);
}

void RemoteHost::OpenClient(std::uint32_t client) {
  Result<store::Socket> socket = relay_->Open(client);
  if (socket) return services_.serve(*std::move(socket));
  services_.say(fmt::format("dtrun: {}: {}", name_, socket.error().text));
  Send(protocol::ClientClosed{client});
}

void RemoteHost::Drop(const std::string& why, const std::string& next) {
  if (lost_ || leaving_) return;
  channel_->Close();  // the agent then ends its ranks
  Lose(why, true, next);
}

void RemoteHost::Lose(const std::string& why, bool agent_died, const std::string& next) {
  if (leaving_ || std::exchange(lost_, true)) return;
  HasEnded();
  waiting_ = false;
  answer_timer_.Cancel();
  if (auto done = std::exchange(preflight_done_, {})) {
    return done(Error::Of(DTRUN_REMOTE_FAILURE, "host {} was lost: {}", name_, why));
  }
  Emit(protocol::Lost{why, agent_died, next});
}

void RemoteHost::RunPreflight(const preflight::Request& request, PreflightDone done) {
  preflight_done_ = std::move(done);
  if (!lost_) return Send(protocol::RunPreflight{request, services_.environment});
  asio::post(loop_, [this, ended = ended_] {
    if (*ended) return;
    if (auto asked = std::exchange(preflight_done_, {}))
      asked(Error::Of(DTRUN_REMOTE_FAILURE, "host {} was lost before it was asked", name_));
  });
}

void RemoteHost::Leave(int exit_code, const std::string& why, std::function<void()> done) {
  if (std::exchange(leaving_, true)) {  // already told
    if (done) done();
    return;
  }
  Send(protocol::Over{exit_code, why});
  channel_->Close(std::move(done));
}

std::string RemoteHost::Address() const { return AddressOf(channel_->peer()); }

std::string AddressOf(const std::string& endpoint) {
  const Result<HostParts> parts = SplitHost(endpoint);
  return parts ? parts->host : endpoint;
}

}  // namespace dtrun::membership
