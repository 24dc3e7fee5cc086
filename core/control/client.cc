#include "core/control/client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/text.h"
#include "core/control/address.h"
#include "core/wire/json.h"

namespace dtrun::control {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestAnswer = std::size_t{256} << 20;

Error NoAnswer(const fs::path& folder, std::chrono::milliseconds limit) {
  return Error::Of(DTRUN_TIMEOUT,
                   "the job in '{}' did not answer within {}: its dtrun is stopped or very busy",
                   folder.string(), FormatDuration(limit));
}

Error NoJob(const fs::path& folder, std::string_view why) {
  return Error::Of(DTRUN_NOT_FOUND, "no answer of the job in '{}': {}", folder.string(), why);
}

// It lives, but what it says is of no use.
Error Unread(const fs::path& folder, std::string_view why) {
  return Error::Of(DTRUN_INTERNAL, "no answer of the job in '{}': {}", folder.string(), why);
}

// False: the time is over. Clock::time_point::max(): no limit.
bool WaitFor(int socket, short events, Clock::time_point until) {
  pollfd one{socket, events, 0};
  for (;;) {
    int left = -1;
    if (until != Clock::time_point::max()) {
      const auto time = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      left = static_cast<int>(std::max<std::int64_t>(time, 0));
    }
    const int ready = ::poll(&one, 1, left);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Who listens (unix(7)).
std::optional<uid_t> OwnerOf(int socket) {
  ucred owner{};
  socklen_t size = sizeof owner;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0) return std::nullopt;
  return owner.uid;
}

// A job answers its own user and root.
std::string WhyClosed(int socket, const char* otherwise) {
  const std::optional<uid_t> owner = OwnerOf(socket);
  if (!owner || *owner == ::geteuid() || ::geteuid() == 0) return otherwise;
  return fmt::format("it is a job of user {}, which answers that user and root alone", *owner);
}

Result<UniqueFd> Connect(const fs::path& folder) {
  const UniqueFd open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open) {
    const int number = errno;
    struct stat status {};
    if (number == EACCES && ::stat(folder.c_str(), &status) == 0 && status.st_uid != ::geteuid())
      return NoJob(folder, fmt::format("it belongs to user {}, and a job answers its own user and root alone",
                                       status.st_uid));
    if (number == ENOENT)
      return NoJob(folder, "its run folder was removed; 'dtrun ps' tells how to end it, if it still runs");
    return Error::System(fmt::format("open '{}'", folder.string()), number);
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::System("make a socket", errno);
  const sockaddr_un address = AddressIn(open.get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::optional<uid_t> owner = OwnerOf(socket.get());
    if (owner && (*owner == ::geteuid() || *owner == 0 || ::geteuid() == 0)) return socket;
    return NoJob(folder, fmt::format("its socket belongs to user {}", owner.value_or(0)));
  }
  if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTSOCK)
    return Error::Of(DTRUN_NOT_FOUND, "no running job answers in '{}'; 'dtrun ps' lists jobs",
                     folder.string());
  return Error::System(fmt::format("connect to '{}'", (folder / kSocket).string()), errno);
}

}  // namespace

constexpr char kClosed[] = "it closed the connection: it has ended meanwhile, or answers many others";

Result<Answer> AskJob(const fs::path& run_folder, const Question& question, std::chrono::milliseconds limit) {
  const Clock::time_point until = Clock::now() + limit;
  Result<UniqueFd> connected = Connect(run_folder);
  if (!connected) return connected.error();
  const int socket = connected->get();
  std::string out = JsonLine(wire::ToJson(question)) + '\n';
  while (!out.empty()) {
    const ssize_t sent = ::send(socket, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent > 0)
      out.erase(0, static_cast<std::size_t>(sent));
    else if (errno != EAGAIN)
      return NoJob(run_folder, WhyClosed(socket, kClosed));
    else if (!WaitFor(socket, POLLOUT, until))
      return NoAnswer(run_folder, limit);
  }
  std::string in;
  std::array<char, 1 << 16> buffer{};
  for (bool ended = false; !ended;) {
    const bool answered = in.ends_with('\n');
    if (answered && question.what != What::kStop) break;  // after kStop, the connection ends with the job
    if (answered)
      WaitFor(socket, POLLIN, Clock::time_point::max());
    else if (!WaitFor(socket, POLLIN, until))
      return NoAnswer(run_folder, limit);
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got > 0) in.append(buffer.data(), static_cast<std::size_t>(got));
    ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    if (in.size() > kLongestAnswer) return Unread(run_folder, "its answer has more than 256 MiB");
  }
  if (in.empty()) return NoJob(run_folder, WhyClosed(socket, kClosed));
  const Json json = ParseJson(in);
  if (json.is_object() && json.contains("error") && json["error"].is_string() && json["error"] != "")
    return Error{DTRUN_FAILED_PRECONDITION, Printable(json["error"].get<std::string>())};
  auto answer = wire::FromJson<Answer>(json, "answer");
  if (!answer) return Unread(run_folder, answer.error().text);
  return answer;
}

}  // namespace dtrun::control
