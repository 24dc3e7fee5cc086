// `dtrun bench`.
#include <fmt/format.h>

#include <utility>

#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/launch/launch.h"
#include "core/node/guard.h"
#include "core/preflight/preflight.h"
#include "tools/bench/program/channel.h"
#include "tools/bench/program/options.h"
#include "tools/bench/program/sweep.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

class LayerFront final : public launch::Front {
 public:
  explicit LayerFront(std::string socket) : socket_(std::move(socket)) {}

  std::string Header(const plan::Plan& plan, const std::string&) override {
    const std::string library = preflight::FactOf(plan.backend_facts, "library");
    if (library.empty()) return "";
    Result<bench::Channel> session = bench::Channel::Connect(socket_);
    if (!session) return fmt::format("dtrun: bench: {}", session.error().text);
    session->Send("library " + Printable(library));
    return "";
  }

 private:
  const std::string socket_;
};

int Bench(const bench::Arguments& arguments) {
  const Result<bench::Request> request = bench::Check(arguments);
  if (!request) {
    PrintMessage("dtrun: bench: {}\n", request.error().text);
    return 2;
  }
  return node::Guarded([&](process::Lifeline& lifeline) { return bench::Sweep(*request, lifeline); });
}

// Runs the job like `dtrun run`, but without a header: reports the choices to the session instead.
int BenchLayer(const ConfigArguments& arguments, const std::string& socket) {
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  LayerFront front(socket);
  const Result<int> code = launch::Launch(*std::move(preparation), front);
  return code ? *code : Complain(code.error());
}

}  // namespace

void AddBench(CLI::App& app, ConfigArguments*, Verbs* to) {
  const auto own = std::make_shared<bench::Arguments>();
  CLI::App* verb = app.add_subcommand(
      "bench", "Measure collectives, backend by backend, beside the libraries called directly");
  const auto shown = [verb](const char* names, auto& target, const std::string& help, const char* type) {
    verb->add_option(names, target, help)->type_name(type)->capture_default_str();
  };
  verb->add_option("OPERATION", own->operation, "One of " + bench::OperationNames())
      ->type_name("")
      ->required();
  shown("-n,--np,--ranks", own->ranks, "Ranks, all on this machine", "N");
  shown("--sizes", own->sizes, "FIRST:LAST in bytes (K, M, G), one size, or a list with commas", "SIZES");
  shown("--factor", own->factor, "From one size to the next", "N");
  shown("--dtype", own->dtype, "One of " + bench::ElementNames(), "TYPE");
  shown("--backend", own->backends, "Backends, with commas (dtrun plugins list)", "NAMES");
  shown("--local", own->locals,
        "Transport between ranks on one host: shm (shared memory, the same for every backend), none "
        "(the backend alone), or both with a comma",
        "NAMES");
  shown("--buffers", own->buffers, "private, registered (from dtrun_alloc) or both", "WHICH");
  shown("--peers", own->peers, "Libraries called directly: raw-gloo, raw-mpi, raw-ucx, torch-gloo; all, none",
        "NAMES");
  shown("--rounds", own->rounds, "Rounds at each size; every layer is measured in each", "N");
  shown("--warmup", own->warmup, "Calls before each turn, not measured", "N");
  verb->add_option(
          "--seconds", own->seconds,
          fmt::format("Approximate duration [{} for each size]; slow layers at large sizes take longer",
                      bench::kSecondsPerSize))
      ->type_name("SECONDS");
  verb->add_option("--json", own->json, "Write everything to this file")->type_name("FILE");
  verb->add_option("--plot", own->plot, "Draw the curves into this .svg or .html")->type_name("FILE");
  verb->add_option("--wrap", own->wrap,
                   "Prefix of every rank's command, for example 'ip netns exec lab${RANK}'")
      ->type_name("COMMAND");
  shown("--mpirun", own->mpirun, "Command that starts MPI ranks, ours and the peer's; -n is added",
        "COMMAND");
  AddRepeated(verb, "--set", &own->sets,
              "Set an option of all jobs, or of those with one backend; repeatable")
      ->type_name("[BACKEND:]KEY=VALUE");
  AddRepeated(verb, "--plugin-dir", &own->plugin_dirs, "Folder searched for plugins first; repeatable")
      ->type_name("DIR")
      ->check(CLI::Validator(CLI::ExistingDirectory).description(""));
  verb->footer(
      "min, median and p99 are over samples; a sample is the mean of a batch of calls on its slowest rank.\n"
      "algbw = bytes / median; busbw as in nccl-tests; E = algbw / that of memcpy on all ranks at once.\n"
      "Every layer's result is checked once at every size. Exit code: 1 when one is wrong.");
  to->push_back({verb, [own] { return Bench(*own); }});
}

void AddBenchLayer(CLI::App& app, ConfigArguments* job, Verbs* to) {
  const auto socket = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("bench-layer", "")->group("");
  verb->add_option("--socket", *socket)->required();
  AddOverrides(verb, job);
  to->push_back({verb, [job, socket] { return BenchLayer(*job, *socket); }});
}

}  // namespace dtrun::cli
