#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/base/own_file.h"
#include "core/base/read_file.h"
#include "core/base/standard_output.h"
#include "core/hosts/this_machine.h"
#include "core/launch/cluster.h"
#include "core/launch/launch.h"
#include "core/output/display.h"
#include "core/output/file_write.h"
#include "core/output/output.h"
#include "core/store/server.h"
#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/torchrun/front.h"
#include "tools/dtrun/torchrun/translate.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

using torchrun::Program;

constexpr int kFailed = 1;
constexpr char kErrorFile[] = "TORCHELASTIC_ERROR_FILE";

constexpr std::size_t kMostOfAScript = std::size_t{16} << 20;

// RFC 9562, version 4, from random hex digits.
std::string Uuid(std::string hex) {
  hex[12] = '4';
  hex[16] = "89ab"[hex[16] % 4];
  for (const std::size_t at : {8u, 13u, 18u, 23u}) hex.insert(at, 1, '-');
  return hex.substr(0, 36);
}

torchrun::Surroundings Look(const torchrun::Arguments& arguments,
                            std::map<std::string, std::string> environment) {
  torchrun::Surroundings here;
  here.environment = std::move(environment);
  const std::string random = store::NewJobKey();
  here.random = random.substr(0, 8);  // as Python's tempfile
  here.uuid = Uuid(random.substr(8));
  const auto temp = here.environment.find("TMPDIR");
  const bool named = temp != here.environment.end() && !temp->second.empty();
  const std::filesystem::path folder = named ? temp->second : "/tmp";
  here.log_base = std::filesystem::absolute(folder / ("torchelastic_" + here.random)).lexically_normal();
  if (!arguments.use_env) {
    auto script = ReadWholeForeignFile(arguments.training_script, kMostOfAScript);
    if (script) here.script_text = *std::move(script);
  }
  here.meet_here = &launch::RootIsHere;
  here.leads_here = &hosts::LeadsHere;
  here.addresses = hosts::OwnAddresses();
  return here;
}

// The caller of torchrun may also have requested the error.
void HandOn(const std::string& error) {
  const char* path = std::getenv(kErrorFile);
  if (path == nullptr || *path == '\0' || error.empty()) return;
  const Status written = WriteNamedFile(path, error);
  if (!written) PrintMessage("dtrun: {}: {}\n", kErrorFile, written.error().text);
}

node::OwnStart OwnStartOf(const torchrun::Arguments& asked) {
  node::OwnStart own;
  own.processes = static_cast<int>(torchrun::ParseInt(asked.nproc_per_node).value_or(0));
  if (asked.run_path) return own;  // its command is the interpreter itself
  own.command = {asked.training_script};
  own.command.insert(own.command.end(), asked.training_script_args.begin(), asked.training_script_args.end());
  return own;
}

// Presents a job as torchrun does.
class TorchrunFront final : public launch::Front {
 public:
  // `note`: printed on each host, about its key.
  TorchrunFront(const torchrun::Arguments& arguments, const torchrun::Surroundings& here, bool keeps_logs,
                std::vector<std::string> notes, std::string note)
      : arguments_(arguments),
        log_base_(here.log_base),
        keeps_logs_(keeps_logs),
        notes_(std::move(notes)),
        note_(std::move(note)) {}

  std::optional<node::OwnStart> Join() override {
    if (!note_.empty()) PrintMessage("dtrun: {}: note: {}\n", hosts::HostName(), note_);
    return OwnStartOf(arguments_);
  }

  // In a world-writable folder, logs are private to the user.
  Status Prepare(const plan::Plan& plan) override {
    if (!plan.log_dir.starts_with(log_base_ + "/") || ::mkdir(log_base_.c_str(), 0700) == 0) return {};
    Error error = Error::System(fmt::format("cannot create '{}'", log_base_), errno);
    error.text += "; choose another folder with --log-dir or TMPDIR";
    return error;
  }

  std::string Header(const plan::Plan& plan, const std::string& run_dir) override {
    std::string text =
        fmt::format("dtrun {}  {}: {}, logs {}\n", DTRUN_VERSION, plan.job, plan::WorldText(plan), run_dir);
    for (const std::string& warning : plan.warnings) text += fmt::format("  warning    {}\n", warning);
    for (const std::string& note : notes_) text += fmt::format("  note       {}\n", note);
    if (!note_.empty()) text += fmt::format("  note       {}\n", note_);
    return text;
  }

  Result<std::optional<output::Routes>> RoutesOf(const plan::Plan& plan, const std::filesystem::path& logs,
                                                 int rank) override {
    torchrun::Seat seat;
    const auto found = std::ranges::find(plan.processes, rank, &plan::Process::rank);
    if (found != plan.processes.end()) {
      seat = {found->host, found->local_rank, plan.hosts[static_cast<std::size_t>(found->host)].name};
    }
    auto routes = torchrun::RouteRank(arguments_, keeps_logs_, logs, rank, seat);
    if (!routes) return routes.error();
    return std::optional(*std::move(routes));
  }

  int End(const job::Outcome& outcome) override {
    if (outcome.exit_code() == 0) return 0;
    if (!outcome.facts || outcome.started == 0) return kUserError;
    Summarise(outcome);
    return kFailed;
  }

 private:
  void Summarise(const job::Outcome& outcome) const {
    const plan::Plan last =
        plan::Resolve(outcome.plan, {{plan::kTokenRunDir, outcome.run_dir},
                                     {plan::kTokenGeneration, std::to_string(outcome.facts->generation)}});
    std::map<int, int> local_ranks;
    std::map<int, std::string> error_files;
    for (const plan::Process& process : last.processes) {
      local_ranks[process.rank] = process.local_rank;
      if (const auto file = process.env.find(kErrorFile); file != process.env.end())
        error_files[process.rank] = file->second;
    }
    const auto failures = torchrun::FailuresOf(*outcome.facts, outcome.started, local_ranks, error_files);
    if (!failures) return;
    output::WriteWithin(STDERR_FILENO,
                        output::TamedMessage(torchrun::Summary(arguments_.training_script, *failures)));
    HandOn(torchrun::RootErrorFile(*failures));
  }

  const torchrun::Arguments& arguments_;
  const std::string log_base_;
  const bool keeps_logs_;
  const std::vector<std::string> notes_;
  const std::string note_;
};

launch::KeyRule RuleOf(const torchrun::Translation& translated) {
  using Otherwise = launch::KeyRule::Otherwise;
  launch::KeyRule rule;
  rule.job = rule.text = "dtrun torchrun " + translated.run_id;
  rule.origin = "--rdzv-id";
  if (translated.run_id != "none") rule.job_origin = "--rdzv-id=" + translated.run_id;
  rule.refusal = translated.secret.refusal;
  switch (translated.secret.from) {
    case torchrun::Secret::From::kNothing: rule.otherwise = Otherwise::kRefuse; break;
    case torchrun::Secret::From::kRunId: rule.otherwise = Otherwise::kText; break;
    case torchrun::Secret::From::kThisHost: rule.otherwise = Otherwise::kThisHost; break;
  }
  return rule;
}

int Complain(Program program, const std::string& text) {
  PrintMessage("{}{}: error: {}\n", torchrun::Usage(program), torchrun::ProgramName(program), text);
  return kUserError;
}

}  // namespace

int Torchrun(Program program, const std::vector<std::string>& words, Purpose purpose) {
  std::map<std::string, std::string> environment = launch::Environment();
  const auto parsed = torchrun::Parse(program, words, environment);
  if (!parsed) return Complain(program, parsed.error().text);
  if (parsed->help) {
    WriteOutput(torchrun::Help(program));
    return 0;
  }
  const torchrun::Arguments& asked = parsed->arguments;
  std::error_code failure;
  if (asked.log_dir && std::filesystem::is_regular_file(*asked.log_dir, failure)) {
    return Complain(
        program, fmt::format("{}={}: it is a file; name a folder", asked.PlaceOf("log_dir"), *asked.log_dir));
  }
  const torchrun::Surroundings here = Look(asked, std::move(environment));
  auto translated = torchrun::Translate(asked, here);
  if (!translated) return Complain(program, translated.error().text);

  ConfigArguments arguments;
  arguments.base = std::move(translated->base);
  arguments.given = std::move(translated->given);
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  if (purpose != Purpose::kRun) {
    auto plan = preparation->MakePlan();
    if (!plan) return Complain(plan.error());
    plan->notes.insert(plan->notes.end(), translated->notes.begin(), translated->notes.end());
    return PrintPlan(*plan, purpose == Purpose::kPlanJson);
  }
  if (!asked.module && !asked.no_python && !std::filesystem::exists(asked.training_script, failure)) {
    return Complain(program, fmt::format("training_script: there is no '{}' in {}", asked.training_script,
                                         std::filesystem::current_path(failure).string()));
  }
  TorchrunFront front(asked, here, translated->keeps_logs, std::move(translated->notes),
                      launch::HasClusterKey(preparation->spec()) ? "" : translated->secret.note);
  const Result<int> code = launch::Launch(*std::move(preparation), front, {RuleOf(*translated)});
  if (!code) return Complain(code.error());
  return *code == 0 || *code == kUserError ? *code : kFailed;
}

}  // namespace dtrun::cli
