// The verb `dtrun explain`: what a failure text means, and why a job runs as it does. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

struct ExplainArguments {
  std::vector<std::string> words;
  std::vector<std::string> failures;  // files of the user's own
  bool json = false;
};

// Before the words are parsed: CLI11 would take "[a,b]" for a list and drop its brackets and commas.
void KeepBrackets(std::vector<std::string>* words);

// Adds the verb; parsing fills `to`, which must outlive it.
CLI::App* AddExplain(CLI::App& app, ExplainArguments* to);
// The exit code: 0, 1 when nothing is known of the text, 2 for a mistake of the user's.
int Explain(const ExplainArguments& arguments);

}  // namespace dtrun::cli
