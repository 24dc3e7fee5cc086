// Plans of shell scripts, and one run on this host without a run directory, for tests of the surrounding
// code.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/job/controller.h"
#include "core/node/inheritance.h"
#include "core/node/local_host.h"
#include "core/plan/plan.h"
#include "core/process/testing.h"
#include "core/verdict/verdict.h"

namespace dtrun::job::testing {

// One `/bin/sh -c script` per rank, marked.
inline plan::Plan ShellPlan(const std::vector<std::string>& scripts, const std::string& mark,
                            const std::filesystem::path& dir) {
  plan::Plan plan;
  plan.job = "test";
  plan.hosts = {{"localhost", 0, static_cast<int>(scripts.size())}};
  plan.launcher = "per-process";
  plan.backend = "none";
  plan.grace = std::chrono::hours(1);
  plan.log_dir = (dir / "runs/{job}/{time}").string();
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    plan::Process process;
    process.rank = process.local_rank = static_cast<int>(i);
    process.argv = {"/bin/sh", "-c", scripts[i]};
    process.env = {{"DTRUN_TEST_MARK", mark}, {"DTRUN_RANK", std::to_string(i)}, {"DIR", dir.string()}};
    process.cwd = dir.string();
    plan.processes.push_back(std::move(process));
  }
  return plan;
}

// Returns the exit code; 2 if it could not be started.
inline int RunHere(const plan::Plan& plan, process::Lifeline& lifeline) {
  boost::asio::io_context loop;
  process::UserSignals signals(loop, lifeline);
  node::LocalOptions options;
  options.socket_dir = lifeline.runtime_dir();
  options.serve = [](store::Socket) {};
  options.environment = node::OwnEnvironment();
  const std::unique_ptr<protocol::Host> host = node::MakeLocalHost(loop, std::move(options));
  verdict::EventLog log;
  Controller controller(
      loop, signals, plan, {host.get()}, [](const std::string&) {}, log);
  if (!controller.Prepare(0, std::string(64, '0'))) return 2;
  World world;
  world.tokens.resize(1);
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    world.outputs.push_back(std::make_unique<process::testing::MemoryOutput>());
  }
  return controller.Run(std::move(world)) ? verdict::ExitCode(log.facts()) : 2;
}

}  // namespace dtrun::job::testing
