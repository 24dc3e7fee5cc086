// torchrun's command line: any words and PET_ variables give arguments or one line of error.
//
// The input's lines are words; those before a line "==" are variables, NAME=VALUE.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/translate.h"

namespace torchrun_fuzz {

using namespace dtrun;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void CheckError(const Error& error) {
  Require(error.code == DTRUN_INVALID_ARGUMENT, "an error is the user's");
  Require(!error.text.empty(), "an error says something");
}

void Try(torchrun::Program program, const std::vector<std::string>& words,
         const std::map<std::string, std::string>& environment) {
  const auto parsed = torchrun::Parse(program, words, environment);
  if (!parsed) return CheckError(parsed.error());
  if (parsed->help) return;
  const torchrun::Arguments& it = parsed->arguments;
  Require(0 < it.min_nodes && it.min_nodes <= it.max_nodes, "nodes are a range");
  Require(!it.training_script.empty(), "there is a script");
  Require(it.training_script_args.size() < words.size(), "the script's arguments are among the words");
  // What follows the script is passed on as it is.
  const std::size_t first = words.size() - it.training_script_args.size();
  Require(words[first - 1] == it.training_script, "the script stands before its arguments");
  for (std::size_t i = 0; i < it.training_script_args.size(); ++i) {
    Require(it.training_script_args[i] == words[first + i], "the script's arguments are unchanged");
  }
  torchrun::Surroundings here;
  here.environment = environment;
  here.meet_here = [](const std::string& host, int) { return host.size() % 2 == 0; };
  const auto translated = torchrun::Translate(it, here);
  if (!translated) return CheckError(translated.error());
  Require(!translated->given.empty(), "a command is given");
}

DTRUN_FUZZ_TARGET(torchrun)(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line != "==") {
      words.push_back(line);
      continue;
    }
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals != word.npos) environment[word.substr(0, equals)] = word.substr(equals + 1);
    }
    words.clear();
  }
  Try(torchrun::Program::kTorchrun, words, environment);
  Try(torchrun::Program::kLaunch, words, environment);
  return 0;
}

}  // namespace torchrun_fuzz
