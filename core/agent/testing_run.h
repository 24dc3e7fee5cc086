// A plan run on this host without a run directory, for tests of what is around it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/agent/conductor.h"
#include "core/agent/local_host.h"
#include "core/agent/testing.h"
#include "core/agent/verdict.h"

namespace dtrun::agent::testing {

// The exit code; 2 when it could not be started.
inline int RunHere(const plan::Plan& plan, Lifeline& lifeline) {
  boost::asio::io_context loop;
  UserSignals signals(loop, lifeline);
  LocalOptions options;
  options.socket_dir = lifeline.runtime_dir();
  options.serve = [](store::Socket) {};
  options.environment = OwnEnvironment();
  const std::unique_ptr<Host> host = MakeLocalHost(loop, std::move(options));
  Conductor conductor(loop, signals, plan, {host.get()}, [](const std::string&) {});
  if (!conductor.Prepare(0, std::string(64, '0'))) return 2;
  World world;
  world.tokens.resize(1);
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    world.outputs.push_back(std::make_unique<MemoryOutput>());
  }
  const Result<Facts> facts = conductor.Run(std::move(world));
  return facts ? ExitCode(*facts) : 2;
}

}  // namespace dtrun::agent::testing
