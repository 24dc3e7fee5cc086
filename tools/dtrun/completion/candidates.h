// Computes completions of a dtrun command line: words with descriptions, and which files a shell adds.
//
// Verbs, flags and their values come from the parser; keys and values of --set from the options. The shell
// scripts only display the result. Pure except for plugin queries; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/spec.h"

namespace dtrun::cli {

struct Candidate {
  std::string word;  // replaces the whole current word
  std::string text;  // one line; may be empty
};

// The file names to offer as well. In a word such as KEY=VALUE the file follows the last '='. kRunnable:
// scripts, programs and configs, as dtrun's first word.
enum class Files { kNone, kAny, kToml, kFolders, kRunnable };

struct Candidates {
  std::vector<Candidate> words;  // all begin with the current word
  Files files = Files::kNone;
};

// Sources of words that are not in the parser.
struct CompletionSources {
  const CLI::App* root = nullptr;
  std::vector<const CLI::App*> runs;  // verbs, besides the root, that take a program
  options::Schema options;
  std::vector<Candidate> dialects;
  std::vector<Candidate> torchrun;   // torchrun's flags
  std::vector<Candidate> templates;  // for config init
  // `kind`: "backend", "launcher"; empty: both.
  std::function<std::vector<Candidate>(std::string_view kind)> plugins;
  // Options with full keys of the plugins of a kind, "backend" or "launcher". Queried only when needed.
  std::function<options::Schema(std::string_view kind)> plugin_options;
  // The names in PATH with this prefix.
  std::function<std::vector<std::string>(std::string_view prefix)> programs;
};

// `words`: the words after "dtrun". The last one is the current word and may be empty.
Candidates Complete(const CompletionSources& sources, const std::vector<std::string>& words);

// One line for the files, then one per word: the word, a tab, its description.
std::string RenderCandidates(const Candidates& candidates);

// `dtrun completion bash|zsh|fish`: shell functions that call `dtrun completion words` and show the answer.
struct CompletionScript {
  const char* shell;
  const char* help;
  std::string_view text;
};
std::span<const CompletionScript> CompletionScripts();

}  // namespace dtrun::cli
