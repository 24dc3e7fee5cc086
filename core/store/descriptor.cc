#include "core/store/descriptor.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include "core/store/connection.h"

namespace dtrun::store {
namespace {

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
