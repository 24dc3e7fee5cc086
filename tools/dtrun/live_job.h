// The verbs for a running job: `dtrun stacks`, `dtrun top` and `dtrun stop`. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dtrun::cli {

struct StacksArguments {
  std::string job;
  std::string ranks;  // "0,4-7"; empty: all
  bool native = false;
  bool all_threads = false;
  bool json = false;
};

struct TopArguments {
  std::string job;
  double seconds = 0;  // 0: not given
  bool json = false;
};

struct StopArguments {
  std::string job;
  std::string grace;
};

// Each adds the verb. Parsing fills `to`, which must outlive it.
CLI::App* AddStacks(CLI::App& app, StacksArguments* to);
CLI::App* AddTop(CLI::App& app, TopArguments* to);
CLI::App* AddStop(CLI::App& app, StopArguments* to);

// The exit code: 0; 1 if a rank could not be read, or the job did not end; 2 for a user error.
int Stacks(const StacksArguments& arguments);
int Top(const TopArguments& arguments);
int Stop(const StopArguments& arguments);

}  // namespace dtrun::cli
