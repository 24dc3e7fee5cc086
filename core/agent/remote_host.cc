#include "core/agent/remote_host.h"

#include <fmt/format.h>

namespace dtrun::agent {

RemoteHost::RemoteHost(boost::asio::io_context& loop, std::string name,
                       std::unique_ptr<control::Channel> channel, const Services& services,
                       std::function<void(const Introduction&)> introduced)
    : name_(std::move(name)),
      channel_(std::move(channel)),
      services_(services),
      introduced_(std::move(introduced)) {
  relay_.emplace(loop, store::Relay::Wire{{},
                                          [this](std::uint32_t client, std::string_view bytes) {
                                            channel_->Send(Encode(ToAgent(ClientData{client, bytes})));
                                          },
                                          [this](std::uint32_t client) {
                                            channel_->Send(Encode(ToAgent(ClientClosed{client})));
                                          }});
  channel_->Start({[this](std::string_view message) { OnMessage(message); },
                   [this](const control::Loss& loss) { OnLost(loss); },
                   {}});
}

void RemoteHost::Do(const Command& command) {
  if (const auto* prepare = std::get_if<Prepare>(&command)) {
    Prepare whole = *prepare;
    whole.environment = services_.environment;
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
          if (socket) return services_.serve(*std::move(socket));
          services_.say(fmt::format("dtrun: {}: {}", name_, socket.error().text));
          channel_->Send(Encode(ToAgent(ClientClosed{seen.client})));
        } else if constexpr (std::is_same_v<T, ClientData>) {
          relay_->Data(seen.client, seen.bytes);
        } else if constexpr (std::is_same_v<T, ClientClosed>) {
          relay_->Close(seen.client);
        } else if constexpr (std::is_same_v<T, Introduction>) {
          if (const auto introduced = std::exchange(introduced_, {})) introduced(seen);
        } else if constexpr (std::is_same_v<T, Examined>) {
          if (auto done = std::exchange(examination_done_, {})) done(std::move(seen.answer));
        } else if constexpr (std::is_same_v<T, Lost>) {
          Lose(seen.why, seen.agent_died);
        } else {
          Emit(seen);
        }
      },
      *decoded);
}

void RemoteHost::OnLost(const control::Loss& loss) {
  Lose(loss.error.text, loss.closed || loss.error.code != DTRUN_TIMEOUT);
}

void RemoteHost::Lose(const std::string& why, bool agent_died) {
  if (leaving_ || std::exchange(lost_, true)) return;
  if (auto done = std::exchange(examination_done_, {})) {
    return done(Error{DTRUN_REMOTE_FAILURE, fmt::format("host {} was lost: {}", name_, why)});
  }
  Emit(Lost{why, agent_died});
}

void RemoteHost::Examine(const std::string& question, ExaminationDone done) {
  examination_done_ = std::move(done);
  channel_->Send(Encode(ToAgent(agent::Examine{question, services_.environment})));
}

void RemoteHost::Leave(int exit_code, const std::string& why, std::function<void()> done) {
  if (std::exchange(leaving_, true)) {  // it has been told already
    if (done) done();
    return;
  }
  channel_->Send(Encode(ToAgent(Over{exit_code, why})));
  channel_->Close(std::move(done));
}

std::string RemoteHost::Address() const { return AddressOf(channel_->peer()); }

std::string AddressOf(const std::string& endpoint) {
  if (endpoint.starts_with('[')) return endpoint.substr(1, endpoint.find(']') - 1);
  return endpoint.substr(0, endpoint.rfind(':'));
}

}  // namespace dtrun::agent
