// The verb `dtrun config`: checks a config, explains an option, lists all options, creates a config. Main
// thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/templates.h"

namespace dtrun::cli {

// The verbs below `config` and their arguments besides the job's flags.
struct ConfigVerb {
  struct Arguments {
    std::string key;     // for explain
    std::string prefix;  // for list
    bool json = false;
    bool markdown = false;
    InitArguments init;
  };
  const CLI::App* check = nullptr;
  const CLI::App* explain = nullptr;
  const CLI::App* list = nullptr;
  const CLI::App* init = nullptr;
  std::shared_ptr<Arguments> own = std::make_shared<Arguments>();

  // The exit code; unset if another verb was given.
  std::optional<int> Run(const ConfigArguments& arguments) const;
};

// Parsing fills `to`, which must outlive the app.
ConfigVerb AddConfig(CLI::App& app, ConfigArguments* to);

}  // namespace dtrun::cli
