// `dtrun bench`.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/launch/launch.h"
#include "core/node/guard.h"
#include "tools/bench/program/channel.h"
#include "tools/bench/program/sweep.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

class LayerFront final : public launch::Front {
 public:
  explicit LayerFront(std::string socket) : socket_(std::move(socket)) {}

  std::string Header(const plan::Plan& plan, const std::string&) override {
    const auto library =
        std::ranges::find(plan.backend_facts, "library", [](const auto& fact) { return fact.first; });
    if (library == plan.backend_facts.end()) return "";
    Result<bench::Channel> session = bench::Channel::Connect(socket_);
    if (!session) return fmt::format("dtrun: bench: {}", session.error().text);
    session->Send("library " + Printable(library->second));
    return "";
  }

 private:
  const std::string socket_;
};

}  // namespace

CLI::App* AddBench(CLI::App& app, bench::Arguments* to) {
  CLI::App* verb = app.add_subcommand(
      "bench", "Measure collectives, backend by backend, beside the libraries called directly");
  verb->add_option("OPERATION", to->operation, "One of " + bench::OperationNames())
      ->type_name("")
      ->required();
  verb->add_option("-n,--np,--ranks", to->ranks, "Ranks, all on this machine")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--sizes", to->sizes, "FIRST:LAST in bytes (K, M, G), one size, or a list with commas")
      ->type_name("SIZES")
      ->capture_default_str();
  verb->add_option("--factor", to->factor, "From one size to the next")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--dtype", to->dtype, "One of " + bench::ElementNames())
      ->type_name("TYPE")
      ->capture_default_str();
  verb->add_option("--backend", to->backends, "Backends, with commas (dtrun plugins list)")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_option(
          "--local", to->locals,
          "Transport between ranks on one host: shm (shared memory, the same for every backend), none "
          "(the backend alone), or both with a comma")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_option("--buffers", to->buffers, "private, registered (from dtrun_alloc) or both")
      ->type_name("WHICH")
      ->capture_default_str();
  verb->add_option("--peers", to->peers,
                   "Libraries called directly: raw-gloo, raw-mpi, raw-ucx, torch-gloo; all, none")
      ->type_name("NAMES")
      ->capture_default_str();
  verb->add_option("--rounds", to->rounds, "Rounds at each size; every layer is measured in each")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--warmup", to->warmup, "Calls before each turn, not measured")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--seconds", to->seconds,
          fmt::format("Approximate duration [{} for each size]; slow layers at large sizes take longer",
                      bench::kSecondsPerSize))
      ->type_name("SECONDS");
  verb->add_option("--json", to->json, "Write everything to this file")->type_name("FILE");
  verb->add_option("--plot", to->plot, "Draw the curves into this .svg or .html")->type_name("FILE");
  verb->add_option("--wrap", to->wrap,
                   "Prefix of every rank's command, for example 'ip netns exec lab${RANK}'")
      ->type_name("COMMAND");
  verb->add_option("--mpirun", to->mpirun, "Command that starts MPI ranks, ours and the peer's; -n is added")
      ->type_name("COMMAND")
      ->capture_default_str();
  verb->add_option("--set", to->sets, "Set an option of all jobs, or of those with one backend; repeatable")
      ->type_name("[BACKEND:]KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  verb->add_option("--plugin-dir", to->plugin_dirs, "Folder searched for plugins first; repeatable")
      ->type_name("DIR")
      ->check(CLI::Validator(CLI::ExistingDirectory).description(""))
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  verb->footer(
      "min, median and p99 are over samples; a sample is the mean of a batch of calls on its slowest rank.\n"
      "algbw = bytes / median; busbw as in nccl-tests; E = algbw / that of memcpy on all ranks at once.\n"
      "Every layer's result is checked once at every size. Exit code: 1 when one is wrong.");
  return verb;
}

int Bench(const bench::Arguments& arguments) {
  const Result<bench::Request> request = bench::Check(arguments);
  if (!request) {
    PrintMessage("dtrun: bench: {}\n", request.error().text);
    return 2;
  }
  return node::Guarded([&](process::Lifeline& lifeline) { return bench::Sweep(*request, lifeline); });
}

CLI::App* AddBenchLayer(CLI::App& app, ConfigArguments* to, std::string* socket) {
  CLI::App* verb = app.add_subcommand("bench-layer", "")->group("");
  verb->add_option("--socket", *socket)->required();
  AddOverrides(verb, to);
  return verb;
}

int BenchLayer(const ConfigArguments& arguments, const std::string& socket) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  LayerFront front(socket);
  const Result<int> code = launch::Launch(*std::move(preparation), front);
  return code ? *code : Complain(code.error());
}

}  // namespace dtrun::cli
