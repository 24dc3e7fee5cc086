// dtrun's own output, outside a job's console: text of its verbs on stdout, messages on stderr.
//
// Never throws, unlike fmt::print on a full disk. The first failure of stdout is kept; the process calls
// FlushOutput once at its end, which reports it. Any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"

namespace dtrun {

void WriteOutput(std::string_view text);
void WriteMessage(std::string_view text);

// Sets how messages are formatted, for example wrapped at the terminal's width. Default: unchanged. Call it
// before other threads start.
using MessageForm = std::string (*)(std::string_view text);
void FormMessages(MessageForm form);

template <class... Args>
void PrintOutput(fmt::format_string<Args...> format, Args&&... args) {
  WriteOutput(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void PrintMessage(fmt::format_string<Args...> format, Args&&... args) {
  WriteMessage(fmt::format(format, std::forward<Args>(args)...));
}

// The first error of any write to stdout.
Status FlushOutput();

// The exit code for a process that would exit with `code`: if output was lost, a failure, with a line on
// stderr; 128 + SIGPIPE where a pipe was closed.
int FinishOutput(int code);

}  // namespace dtrun
