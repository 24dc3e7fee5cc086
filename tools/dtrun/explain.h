// The verb `dtrun explain`: explains a failure text, or the choices of a job. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrun::cli {

struct ExplainArguments {
  std::vector<std::string> words;     // none: the newest run of this folder
  std::vector<std::string> failures;  // the user's own failure files
  bool json = false;
};

// Call before parsing: CLI11 would take "[a,b]" for a list and drop its brackets and commas.
void KeepBrackets(std::vector<std::string>* words);

// Adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddExplain(CLI::App& app, ExplainArguments* to);
// The exit code: 0; 1 if the text contains no known failure; 2 for a user error.
int Explain(const ExplainArguments& arguments);

}  // namespace dtrun::cli
