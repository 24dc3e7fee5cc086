#include "core/agent/remote_host.h"

#include <fmt/format.h>

#include "core/agent/process.h"

namespace dtrun::agent {

RemoteHost::RemoteHost(boost::asio::io_context& loop, std::string name,
                       std::unique_ptr<control::Channel> channel, std::unique_ptr<RemoteShell> shell,
                       std::vector<std::string> environment, std::function<void(store::Socket)> serve,
                       std::function<void(const std::string& line)> say)
    : loop_(loop),
      name_(std::move(name)),
      channel_(std::move(channel)),
      shell_(std::move(shell)),
      environment_(std::move(environment)),
      serve_(std::move(serve)),
      say_(std::move(say)) {
  relay_.emplace(loop_, store::Relay::Wire{{},
                                           [this](std::uint32_t client, std::string_view bytes) {
                                             channel_->Send(Encode(ToAgent(ClientData{client, bytes})));
                                           },
                                           [this](std::uint32_t client) {
                                             channel_->Send(Encode(ToAgent(ClientClosed{client})));
                                           }});
  if (shell_ == nullptr) return;
  shell_->SetHandlers(
      {[this](const std::string& line) {
         last_line_ = line;
         if (!leaving_) say_(fmt::format("{}: {}", name_, line));
       },
       [this](const Ending& ending) {
         if (leaving_) return;
         // The channel may know better: what it still holds comes first.
         boost::asio::post(loop_, [this, ending] {
           Lose(ending.signal != 0
                    ? fmt::format("its remote shell was killed by {}", SignalName(ending.signal))
                    : fmt::format("its remote shell ended with code {}{}{}", ending.code,
                                  last_line_.empty() ? "" : ": ", last_line_),
                true);
         });
       }});
}

void RemoteHost::Do(const Command& command) {
  if (const auto* prepare = std::get_if<Prepare>(&command)) {
    Prepare whole = *prepare;
    whole.environment = environment_;
    return channel_->Send(Encode(ToAgent(std::move(whole))));
  }
  std::visit([this](const auto& given) { channel_->Send(Encode(ToAgent(given))); }, command);
}

void RemoteHost::OnMessage(std::string_view message) {
  if (lost_) return;
  Result<ToRoot> decoded = DecodeToRoot(message);
  if (!decoded) return Lose(decoded.error().text, true);
  std::visit(
      [this]<class T>(T& seen) {
        if constexpr (std::is_same_v<T, ClientOpened>) {
          Result<store::Socket> socket = relay_->Open(seen.client);
          if (socket) return serve_(*std::move(socket));
          say_(fmt::format("dtrun: {}: {}", name_, socket.error().text));
          channel_->Send(Encode(ToAgent(ClientClosed{seen.client})));
        } else if constexpr (std::is_same_v<T, ClientData>) {
          relay_->Data(seen.client, seen.bytes);
        } else if constexpr (std::is_same_v<T, ClientClosed>) {
          relay_->Close(seen.client);
        } else if constexpr (std::is_same_v<T, Examined>) {
          if (auto done = std::exchange(examination_done_, {})) done(std::move(seen.answer));
        } else if constexpr (!std::is_same_v<T, Introduction>) {
          Emit(seen);
        }
      },
      *decoded);
}

void RemoteHost::OnLost(const control::Loss& loss) {
  if (leaving_) return;
  Lose(loss.error.text, loss.closed || loss.error.code != DTRUN_TIMEOUT);
}

void RemoteHost::Lose(const std::string& why, bool agent_died) {
  if (std::exchange(lost_, true)) return;
  if (auto done = std::exchange(examination_done_, {})) {
    return done(Error{DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", name_, why)});
  }
  Emit(Lost{why, agent_died});
}

void RemoteHost::Examine(const std::string& question, ExaminationDone done) {
  examination_done_ = std::move(done);
  channel_->Send(Encode(ToAgent(agent::Examine{question})));
}

void RemoteHost::Leave(int exit_code, const std::string& why, std::function<void()> done) {
  leaving_ = true;
  // One that a remote shell has started has no user to tell.
  channel_->Send(Encode(ToAgent(Over{exit_code, shell_ == nullptr ? why : ""})));
  channel_->Close(std::move(done));
}

std::string RemoteHost::Address() const { return AddressOf(channel_->peer()); }

std::string AddressOf(const std::string& endpoint) {
  if (endpoint.starts_with('[')) return endpoint.substr(1, endpoint.find(']') - 1);
  return endpoint.substr(0, endpoint.rfind(':'));
}

}  // namespace dtrun::agent
