#include "core/process/lifeline.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace dtrun::process {

int Lifeline::Next() {
  unsigned char signal = 0;
  const ssize_t size = ::recv(control_.get(), &signal, 1, MSG_DONTWAIT);
  if (size == 1) return signal;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return kNothing;
  return kGuardGone;
}

// A send fails only when the guard is gone, which Next reports.
void Lifeline::Stopped() { ::send(control_.get(), &kMessageStopped, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

void Lifeline::LastWords(std::string_view lines) { Tell(kMessageLastWords, lines); }

void Lifeline::RecordIn(int folder, const std::filesystem::path& run_dir, mode_t mode, std::string_view job) {
  Tell(kMessageRecord, fmt::format("{} {}\n{}", mode, run_dir.string(), job), folder);
}

void Lifeline::Tell(char kind, std::string_view text, int folder) {
  std::string message = kind + std::string(text.substr(0, kMessageBytes - 1));
  iovec bytes{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  if (folder >= 0) {
    header.msg_control = space;
    header.msg_controllen = sizeof space;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &folder, sizeof folder);
  }
  ::sendmsg(control_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace dtrun::process
