// What dtrun itself prints, outside a job's console: text of its verbs on stdout, messages on stderr.
//
// Never throws, as fmt::print does on a full disk. The first failure of stdout is kept, and FlushOutput,
// which the process calls once at its end, reports it. Any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"

namespace dtrun {

void WriteOutput(std::string_view text);
void WriteMessage(std::string_view text);

// How messages are shown from now on: broken at the width of a terminal, say. As they are by default. Call it
// before there are other threads.
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

// The first error of all that was written to stdout, by whatever means.
Status FlushOutput();

// What a process that would exit with `code` exits with: a failure, and a line on stderr, if a part of its
// output is lost.
int FinishOutput(int code);

}  // namespace dtrun
