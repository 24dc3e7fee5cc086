// A small dtrun command line for tests of the splitter.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/dtrun/command_line/split.h"

namespace dtrun::cli {

using Typed = std::vector<std::string>;

// The job's flags at the root and at `plan`, which both take a program; `config check FILE`; `env`, without
// either; `bench OPERATION`; `show`, hidden, which takes a program.
class SplitTest : public ::testing::Test {
 protected:
  SplitTest() {
    CLI::App* plan = app_.add_subcommand("plan", "");
    for (CLI::App* app : {&app_, plan}) {
      app->add_option("-c,--config", text_);
      app->add_option("-n,--np,--ranks", text_)->type_name("N");
      app->add_option("--processes-per-host", text_);
      app->add_option("--hostfile", text_);
      app->add_option("--torch-backend", text_);
      app->add_option("--plugin-dir", texts_)->expected(1)->take_all();
      app->add_option("-N,-H,--hosts", texts_)->expected(1)->take_all();
      app->add_option("--set", texts_)->expected(1)->take_all();
      app->add_flag("-q,--quiet", flag_);
      app->add_flag("-v,--verbose", flag_);
    }
    app_.add_flag("--extra", flag_);
    CLI::App* show = app_.add_subcommand("show", "")->group("");  // no -q and -v of its own
    show->add_option("-n,--ranks", text_);
    show->add_option("-N,-H,--hosts", texts_)->expected(1)->take_all();
    show->add_option("--set", texts_)->expected(1)->take_all();
    plan->add_flag("--json", flag_);
    CLI::App* config = app_.add_subcommand("config", "");
    config->require_subcommand(1);
    config->add_subcommand("check", "")->add_option("FILE", text_, "a config")->required();
    app_.add_subcommand("doctor", "");
    app_.add_subcommand("env", "")->add_option("--as", text_);
    app_.add_subcommand("bench", "")->add_option("OPERATION", text_);
    app_.add_subcommand("agent", "")->group("")->add_option("--socket", text_);
    grammar_ = {&app_,
                {plan, show},
                [](const std::string& name) { return name == "rum"; },
                [](const std::string& name) { return name == "job.grace"; },
                [](const std::string& name) { return name == "hf"; }};
  }

  SplitWords Good(const Typed& words) {
    auto split = SplitCommandLine(grammar_, words);
    EXPECT_TRUE(split.ok()) << split.error().text;
    return split.ok() ? *std::move(split) : SplitWords{};
  }
  std::string Refused(const Typed& words) {
    const auto split = SplitCommandLine(grammar_, words);
    EXPECT_FALSE(split.ok());
    return split.ok() ? "" : split.error().text;
  }

  CLI::App app_{"", "dtrun"};
  Grammar grammar_;
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

}  // namespace dtrun::cli
