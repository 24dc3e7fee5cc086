// What may be typed next on dtrun's command line: words with their texts, and which files a shell adds.
//
// Verbs, flags and their values are read from the parser, the keys and values of --set from the options; the
// scripts of the shells (scripts.cc) only show them. Pure but for what asks plugins; one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/spec.h"

namespace dtrun::cli {

struct Candidate {
  std::string word;  // in place of the whole current word
  std::string text;  // one line; may be empty
};

// The names of files that fit too. In a word such as KEY=VALUE the file is behind the last '='.
// kRunnable: what dtrun takes as its first word, scripts, programs and configs.
enum class Files { kNone, kAny, kToml, kFolders, kRunnable };

struct Candidates {
  std::vector<Candidate> words;  // all begin with the current word
  Files files = Files::kNone;
};

// What the words stand for that are not the parser's own.
struct CompletionSources {
  const CLI::App* root = nullptr;
  std::vector<const CLI::App*> runs;  // verbs that take a program besides the root
  options::Schema options;
  std::vector<Candidate> dialects;
  std::vector<Candidate> torchrun;   // its flags
  std::vector<Candidate> templates;  // of config init
  // `kind`: "backend", "launcher"; empty: both.
  std::function<std::vector<Candidate>(std::string_view kind)> plugins;
  // Of the plugins of that kind, "backend" or "launcher", with full keys; asked when one is typed.
  std::function<options::Schema(std::string_view kind)> plugin_options;
  // The names in PATH that have the prefix.
  std::function<std::vector<std::string>(std::string_view prefix)> programs;
};

// `words`: what was typed behind "dtrun"; the last is the current one, and may be empty.
Candidates Complete(const CompletionSources& sources, const std::vector<std::string>& words);

// A line for the files, then one for each word: the word, a tab, its text.
std::string RenderCandidates(const Candidates& candidates);

}  // namespace dtrun::cli
