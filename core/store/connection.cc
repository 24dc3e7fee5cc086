#include "core/store/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace dtrun::store {
namespace {

Error AgentGone() {
  return Error{DTRUN_REMOTE_FAILURE,
               "the agent of this host is gone, and the job with it; see the output of dtrun for the cause"};
}

// The error of a socket call.
Error SocketError(const char* action, int number) {
  if (number == EPIPE || number == ECONNRESET) return AgentGone();
  if (number == EBADF) {
    return Error::Of(DTRUN_SYSTEM,
                     "{}: the connection's descriptor was closed in this process, which only dtrun may do; "
                     "look for a close of descriptors in the program and in its plugins",
                     action);
  }
  return Error::System(action, number);
}

constexpr timeval kAgentsMoment{10, 0};

// One byte, because a stream carries rights only with data, and room for one descriptor.
struct Parcel {
  char byte = 0;
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  iovec bytes{&byte, 1};
  msghdr header{};

  Parcel() {
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = space;
    header.msg_controllen = sizeof space;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
};

}  // namespace

Result<UniqueFd> ConnectToAgent(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& path = socket.native();
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error::Of(DTRUN_INVALID_ARGUMENT,
                     "'{}' is not the path of a Unix socket: it has {} bytes, allowed are "
                     "1 to {}; DTRUN_STORE is set by dtrun",
                     path, path.size(), sizeof address.sun_path - 1);
  }
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Error::System("open a socket to the agent of this host", errno);
  const auto connect = [&](std::size_t at) {
    std::memcpy(address.sun_path + at, path.data(), path.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    int connected = 0;
    do {
      connected = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size);
    } while (connected != 0 && errno == EINTR);
    return connected == 0;
  };
  if (connect(0)) return fd;
  const int number = errno;
  address.sun_path[0] = '\0';
  if ((number == ENOENT || number == EACCES) && connect(1) && IsOfThisUser(fd.get())) return fd;
  if (number == ENOENT || number == ECONNREFUSED) {
    return Error::Of(DTRUN_REMOTE_FAILURE,
                     "no agent of dtrun listens on '{}' (from DTRUN_STORE); the job has ended or this "
                     "process was not started by it: start it with dtrun; or it is in a container that has "
                     "neither the network of the host nor the folder '{}': give it one of them",
                     path, socket.parent_path().string());
  }
  return Error::System(fmt::format("connect to the agent of this host at '{}'", path), number);
}

bool IsOfThisUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

Result<Connection> Connection::Open(const std::filesystem::path& socket) {
  Result<UniqueFd> fd = ConnectToAgent(socket);
  if (!fd) return std::move(fd).error();
  return Connection(*std::move(fd));
}

Result<Reply> Connection::Call(Body body, std::optional<Clock::time_point> deadline) {
  const std::uint32_t id = ++last_id_;
  const std::string frame = Encode(Request{id, std::move(body)});
  if (frame.size() > kMaxFrameBytes) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "a store request of {} bytes; allowed are {}", frame.size(),
                     kMaxFrameBytes);
  }
  if (Status sent = SendAll(frame, deadline); !sent) return std::move(sent).error();

  std::array<char, 65536> chunk;
  for (;;) {
    Result<std::optional<std::string_view>> payload = frames_.Next();
    if (!payload) return std::move(payload).error();
    if (payload->has_value()) {
      Result<Reply> reply = DecodeReply(**payload);
      if (reply && reply->id != id) {
        return Error::Of(DTRUN_INTERNAL, "the agent answered request {}, not {}", reply->id, id);
      }
      return reply;
    }
    if (Status ready = Await(POLLIN, deadline); !ready) return std::move(ready).error();
    const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) return AgentGone();
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return SocketError("receive from the agent of this host", errno);
    }
    frames_.Append({chunk.data(), static_cast<std::size_t>(got)});
  }
}

Status Connection::SendAll(std::string_view bytes, std::optional<Clock::time_point> deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EAGAIN) {
      if (Status ready = Await(POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return SocketError("send to the agent of this host", errno);
    }
  }
  return {};
}

Status Connection::Await(short events, std::optional<Clock::time_point> deadline) {
  for (;;) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      // Long waits are split, because poll takes an int.
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
      if (left <= 0) {
        return Error{DTRUN_TIMEOUT,
                     "the agent of this host does not answer; it may be stopped or overloaded"};
      }
    }
    pollfd entry{fd_.get(), events, 0};
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Error::System("wait for the agent of this host", errno);
  }
}

void Connection::Interrupt(int fd) { ::shutdown(fd, SHUT_RDWR); }

void SendDescriptor(int socket, int descriptor) {
  Parcel parcel;
  cmsghdr* const rights = CMSG_FIRSTHDR(&parcel.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  ::sendmsg(socket, &parcel.header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Result<UniqueFd> ReceiveDescriptor(const std::filesystem::path& socket) {
  Result<UniqueFd> connection = ConnectToAgent(socket);
  if (!connection) return connection;
  ::setsockopt(connection->get(), SOL_SOCKET, SO_RCVTIMEO, &kAgentsMoment, sizeof kAgentsMoment);
  Parcel parcel;
  ssize_t size = 0;
  do {
    size = ::recvmsg(connection->get(), &parcel.header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const std::string action = fmt::format("receive a descriptor from '{}'", socket.string());
  if (size < 0) return Error::System(action, errno);
  const cmsghdr* const rights = CMSG_FIRSTHDR(&parcel.header);
  // Truncated if this process has no descriptor left.
  if ((parcel.header.msg_flags & MSG_CTRUNC) != 0) return Error::System(action, EMFILE);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return Error::System(action, ECONNRESET);
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  return UniqueFd(descriptor);
}

}  // namespace dtrun::store
