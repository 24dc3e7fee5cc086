#include "core/node/torch_recorder.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/fd.h"
#include "core/base/json.h"
#include "core/wire/json.h"

namespace dtrun::node {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostAnswer = std::size_t{64} << 10;

UniqueFd Connect(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, text.data(), text.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A rank with a full backlog does not answer either: EAGAIN.
  const bool connected =
      socket && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return connected ? std::move(socket) : UniqueFd();
}

// All that the peer sends before it closes; empty: not in time, or too much.
std::string ReadAll(const UniqueFd& socket, Clock::time_point deadline) {
  std::string answer;
  std::array<char, 4096> buffer;
  while (answer.size() <= kMostAnswer) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd input{socket.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&input, 1, static_cast<int>(left.count())) == 0) return {};
    const ssize_t got = ::read(socket.get(), buffer.data(), buffer.size());
    if (got == 0) return answer;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return {};
    if (got > 0) answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace

std::optional<TorchCall> AskTorch(const std::filesystem::path& folder, pid_t pid,
                                  std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const UniqueFd socket = Connect(folder / ("torch." + std::to_string(pid)));
  if (!socket) return std::nullopt;
  const std::string answer = ReadAll(socket, deadline);
  if (answer.empty()) return std::nullopt;
  Result<TorchCall> call = wire::FromJson<TorchCall>(ParseJson(answer), "the answer of torch's recorder");
  if (!call) return std::nullopt;
  return *std::move(call);
}

}  // namespace dtrun::node
