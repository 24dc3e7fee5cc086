// dtrun's command line: any words give what CLI11 reads and a command, or one line of error.
//
// The input's lines are words.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.h"
#include "tools/dtrun/command_line/split.h"

namespace command_line_fuzz {

using dtrun::cli::Grammar;
using dtrun::cli::SplitWords;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Verbs of every kind: some that take a program, one below another, one with an argument of its own.
class App {
 public:
  App() {
    CLI::App* plan = app.add_subcommand("plan", "");
    for (CLI::App* one : {&app, plan}) {
      one->add_option("-c,--config", text_);
      one->add_option("-n,--np,--ranks", text_);
      one->add_option("-N,-H,--hosts", texts_)->expected(1)->take_all()->allow_extra_args(false);
      one->add_option("--set", texts_)->expected(1)->take_all()->allow_extra_args(false);
      one->add_flag("-q,--quiet", flag_);
    }
    app.add_subcommand("config", "")->add_subcommand("check", "")->add_option("FILE", text_);
    app.add_subcommand("bench", "")->add_option("--seconds", number_);
    grammar = {&app, {plan}, [](const std::string& name) { return name.size() % 2 == 0; }};
  }

  CLI::App app{"", "dtrun"};
  Grammar grammar;

 private:
  std::string text_;
  std::vector<std::string> texts_;
  int number_ = 0;
  bool flag_ = false;
};

DTRUN_FUZZ_TARGET(command_line)(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  while (!text.empty() && words.size() < 64) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  App dtrun;
  auto split = dtrun::cli::SplitCommandLine(dtrun.grammar, words);
  if (!split) {
    Require(!split.error().text.empty(), "an error says something");
    return 0;
  }
  Require(split->command.size() <= words.size() &&
              std::equal(split->command.rbegin(), split->command.rend(), words.rbegin()),
          "the command is the end of the line, as it was typed");
  try {
    dtrun.app.parse(std::vector<std::string>(split->words.rbegin(), split->words.rend()));
  } catch (const CLI::Success&) {
  } catch (const CLI::ParseError& error) {
    Require(!dtrun::cli::Refusal(error, dtrun.app, split->verb).empty(), "a refusal says something");
  }
  return 0;
}

}  // namespace command_line_fuzz
