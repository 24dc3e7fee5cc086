#include "core/base/standard_output.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

std::atomic<int> output_failure = 0;  // errno of the first failure

void KeepFailure() {
  int none = 0;
  output_failure.compare_exchange_strong(none, errno == 0 ? EIO : errno);
}

MessageForm message_form = nullptr;

}  // namespace

void WriteOutput(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) KeepFailure();
}

void WriteMessage(std::string_view message) {
  const std::string text = MaskUrls(message);
  std::string shown;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    shown += Printable(std::string_view(text).substr(begin, end - begin));
    if (end < text.size()) shown += text[end];
    begin = end + 1;
  }
  if (message_form != nullptr) shown = message_form(shown);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

void FormMessages(MessageForm form) { message_form = form; }

Status FlushOutput() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) KeepFailure();
  const int failure = output_failure;
  if (failure == 0) return {};
  return Error::System("cannot write to standard output", failure);
}

int FinishOutput(int code) {
  const Status written = FlushOutput();
  if (written) return code;
  if (output_failure == EPIPE) return code == 0 ? 128 + SIGPIPE : code;  // the reader wants no more
  PrintMessage("dtrun: {}\n", written.error().text);
  return code == 0 ? EXIT_FAILURE : code;
}

}  // namespace dtrun
