// `dtrun completion bash|zsh|fish`: shell functions that call `dtrun completion words` and show the answer
// (candidates.h). Constant data; any thread.
#pragma once

#include <string_view>
#include <vector>

namespace dtrun::cli {

struct CompletionScript {
  const char* shell;
  const char* help;
  std::string_view text;
};
const std::vector<CompletionScript>& CompletionScripts();

}  // namespace dtrun::cli
