#include "core/agent/lifeline.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace dtrun::agent {

int Lifeline::Next() {
  unsigned char signal = 0;
  const ssize_t size = ::recv(control_.get(), &signal, 1, MSG_DONTWAIT);
  if (size == 1) return signal;
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return kNothing;
  return kGuardGone;
}

// A send can only fail when the guard is gone, which Next reports.
void Lifeline::Stopped() { ::send(control_.get(), &kMessageStopped, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

void Lifeline::LastWords(std::string_view lines) { Tell(kMessageLastWords, lines); }

void Lifeline::RecordIn(const std::filesystem::path& run_dir, mode_t mode, std::string_view job) {
  Tell(kMessageRecord, fmt::format("{} {}\n{}", mode, run_dir.string(), job));
}

void Lifeline::Tell(char kind, std::string_view text) {
  const std::string message = kind + std::string(text.substr(0, kMessageBytes - 1));
  ::send(control_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace dtrun::agent
