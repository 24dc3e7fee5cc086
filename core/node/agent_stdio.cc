#include "core/node/agent_stdio.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "core/base/endpoint.h"

namespace dtrun::node {
namespace {

// One line may name every node of a Slurm allocation.
constexpr std::size_t kLongestLine = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kDrain{500};

}  // namespace

AgentStdio::AgentStdio(asio::io_context& loop, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), stdin_(loop), stdout_(loop), lines_(kLongestLine) {
  stdin_.assign(::dup(STDIN_FILENO));
  stdout_.assign(::dup(STDOUT_FILENO));
  stdout_.non_blocking(true);
  Read();
}

void AgentStdio::Read() {
  stdin_.async_wait(Descriptor::wait_read, [this](const error_code& error) {
    if (error == asio::error::operation_aborted) return;
    ReadOnce();  // a file that cannot be polled, such as /dev/null, can be read
  });
}

void AgentStdio::ReadOnce() {
  std::array<char, 65536> bytes;
  const ssize_t size = ::read(stdin_.native_handle(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return Read();
  if (size <= 0) return handlers_.on_end();
  lines_.Feed({bytes.data(), static_cast<std::size_t>(size)},
              [this](std::string line) { OnLine(std::move(line)); });
  held_ = carrier_ && carrier_->untaken_bytes() > protocol::kMostUntaken;
  if (!held_) Read();
}

void AgentStdio::OnLine(std::string line) {
  if (!std::exchange(requested_, true)) return handlers_.on_request(line);
  if (!carrier_) return;
  // Slurm sends every line to all agents.
  if (const auto carried = protocol::ParseCarried(line); carried && carried->host == carrier_->host()) {
    carrier_->Take(*carried);
  }
}

protocol::Detour AgentStdio::DetourOf(int host) {
  carrier_.emplace(loop_, host,
                   protocol::Carrier::Wire{[this](const std::string& lines) { Send(lines); },
                                           [this] { return queue_.size(); },
                                           [this] {
                                             if (std::exchange(held_, false)) Read();
                                           }});
  Send(protocol::ToLine(
      protocol::Carried{protocol::Carried::Kind::kHere, host, 0, ReachedAt(std::getenv("SSH_CONNECTION"))}));
  return {"root (through the connection that has started this agent)", [this, host] {
            Result<UniqueFd> link = carrier_->Open(++links_);
            if (!link) return UniqueFd();
            Send(protocol::ToLine(protocol::Carried{protocol::Carried::Kind::kOpen, host, links_, {}}));
            return *std::move(link);
          }};
}

void AgentStdio::Send(const std::string& lines) {
  if (!stdout_.is_open()) return;
  queue_ += lines;
  if (!waiting_) Flush();
}

void AgentStdio::Flush() {
  std::size_t sent = 0;
  while (sent < queue_.size()) {
    const ssize_t size = ::write(stdout_.native_handle(), queue_.data() + sent, queue_.size() - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) {  // the reader is gone
      queue_.clear();
      return stdout_.close();
    }
    if (size < 0) break;
    sent += static_cast<std::size_t>(size);
  }
  queue_.erase(0, sent);
  if (queue_.empty()) return;
  waiting_ = true;
  stdout_.async_wait(Descriptor::wait_write, [this](const error_code& error) {
    if (error) return;
    waiting_ = false;
    Flush();
    if (!waiting_ && carrier_) carrier_->OnSent();
  });
}

void AgentStdio::Drain() {
  if (links_ == 0) return;
  const auto deadline = std::chrono::steady_clock::now() + kDrain;
  do {
    loop_.restart();
    if (loop_.poll() > 0) continue;
    if (queue_.empty()) return;
    loop_.run_one_until(deadline);
  } while (std::chrono::steady_clock::now() < deadline);
}

std::string ReachedAt(const char* ssh_connection) {
  std::istringstream words(ssh_connection == nullptr ? "" : ssh_connection);
  std::string client, client_port, server, port;
  if (!(words >> client >> client_port >> server >> port)) return {};
  return EndpointText(server, port);
}

std::vector<std::string> NearestFirst(std::vector<std::string> names, const char* ssh_connection,
                                      const char* launch_node) {
  std::istringstream words(ssh_connection == nullptr ? "" : ssh_connection);
  std::string client;
  words >> client;
  for (const std::string& near : {std::string(launch_node == nullptr ? "" : launch_node), client}) {
    const auto found = std::ranges::find(names, near);
    if (found != names.end()) std::rotate(names.begin(), found, found + 1);
  }
  return names;
}

}  // namespace dtrun::node
