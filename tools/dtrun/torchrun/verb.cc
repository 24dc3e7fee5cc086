#include "tools/dtrun/torchrun/verb.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/hosts/this_machine.h"
#include "core/job/agent.h"
#include "core/launch/cluster.h"
#include "core/launch/restart.h"
#include "core/launch/watch.h"
#include "core/node/serve.h"
#include "core/output/bounded_write.h"
#include "core/output/display.h"
#include "core/output/output.h"
#include "core/plan/hosts.h"
#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/torchrun/options.h"
#include "tools/dtrun/torchrun/parse.h"
#include "tools/dtrun/torchrun/routes.h"
#include "tools/dtrun/torchrun/summary.h"
#include "tools/dtrun/torchrun/translate.h"

namespace dtrun::cli {
namespace {

using torchrun::Program;

constexpr int kFailed = 1;
constexpr char kErrorFile[] = "TORCHELASTIC_ERROR_FILE";

template <std::size_t N>
std::array<std::uint8_t, N> RandomBytes() {
  static_assert(N <= 256, "getrandom may be interrupted above that");
  std::array<std::uint8_t, N> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(N)) std::abort();
  return bytes;
}

// As Python's tempfile makes names unique.
std::string RandomName() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string name;
  for (const std::uint8_t byte : RandomBytes<8>()) name += kLetters[byte % kLetters.size()];
  return name;
}

// RFC 9562, version 4.
std::string RandomUuid() {
  std::array<std::uint8_t, 16> bytes = RandomBytes<16>();
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

torchrun::Surroundings Look(const torchrun::Arguments& arguments,
                            std::map<std::string, std::string> environment) {
  torchrun::Surroundings here;
  here.environment = std::move(environment);
  here.random = RandomName();
  here.uuid = RandomUuid();
  const auto temp = here.environment.find("TMPDIR");
  const bool named = temp != here.environment.end() && !temp->second.empty();
  const std::filesystem::path folder = named ? temp->second : "/tmp";
  here.log_base = std::filesystem::absolute(folder / ("torchelastic_" + here.random)).lexically_normal();
  std::error_code failure;
  const bool readable = std::filesystem::is_regular_file(arguments.training_script, failure);
  if (!arguments.use_env && readable) here.script_text = ReadFile(arguments.training_script);
  here.meet_here = &launch::RootIsHere;
  return here;
}

// One run of a job: what it needs to know of the run once it has begun, and its end.
class TorchrunJob {
 public:
  // Takes over the callbacks of `request`, whose plan changes with the hosts.
  TorchrunJob(const torchrun::Arguments& arguments, bool keeps_logs, std::vector<std::string> notes,
              job::RunRequest request)
      : arguments_(arguments),
        keeps_logs_(keeps_logs),
        notes_(std::move(notes)),
        plan_(request.plan),
        request_(std::move(request)) {
    request_.header = [this](const plan::Plan& plan, const std::string& run_dir) {
      return Begin(plan, run_dir);
    };
    request_.replan = [this, replan = request_.replan](const std::vector<plan::HostOffer>& offers,
                                                       const std::vector<std::string>& answers,
                                                       const network::Decision* network) {
      Result<plan::Plan> plan = replan(offers, answers, network);
      if (plan) plan_ = *plan;
      return plan;
    };
  }

  int Run(process::Lifeline& lifeline) {
    output::SetRouter(
        torchrun::MakeRouter(arguments_, keeps_logs_, [this](int rank) { return SeatOf(rank); }));
    const int code = job::Run(request_, lifeline);
    if (code == 0) return 0;
    const std::string verdict = ReadFile(std::filesystem::path(run_dir_) / "verdict.json");
    if (run_dir_.empty() || !Started(verdict)) return kUserError;
    Summarise(verdict);
    return kFailed;
  }

 private:
  std::string Begin(const plan::Plan& plan, const std::string& run_dir) {
    run_dir_ = run_dir;
    started_ = std::time(nullptr);
    std::string text =
        fmt::format("dtrun {}  {}: {}, logs {}\n", DTRUN_VERSION, plan.job, plan::WorldText(plan), run_dir);
    for (const std::string& note : plan.notes) text += fmt::format("  note       {}\n", note);
    for (const std::string& note : notes_) text += fmt::format("  note       {}\n", note);
    return text;
  }

  // Of the plan that runs.
  torchrun::Seat SeatOf(int rank) const {
    const auto found = std::ranges::find(plan_.processes, rank, &plan::Process::rank);
    if (found == plan_.processes.end()) return {};
    return {found->host, found->local_rank, plan_.hosts[static_cast<std::size_t>(found->host)].name};
  }

  static bool Started(const std::string& verdict) {
    const auto json = nlohmann::json::parse(verdict, nullptr, false);
    return !json.is_object() || json.value("result", "") != "not started";
  }

  // Where each rank of the last generation would have written its own, by rank.
  std::map<int, std::string> ErrorFiles(const std::string& verdict) const {
    const auto json = nlohmann::json::parse(verdict, nullptr, false);
    const std::uint64_t generation = json.is_object() ? json.value("generation", std::uint64_t{0}) : 0;
    const plan::Plan last = plan::Resolve(
        plan_, {{plan::kTokenRunDir, run_dir_}, {plan::kTokenGeneration, std::to_string(generation)}});
    std::map<int, std::string> files;
    for (const plan::Process& process : last.processes) {
      if (const auto file = process.env.find(kErrorFile); file != process.env.end()) {
        files[process.rank] = file->second;
      }
    }
    return files;
  }

  void Summarise(const std::string& verdict) {
    std::map<int, int> local_ranks;
    for (const plan::Process& process : plan_.processes) local_ranks[process.rank] = process.local_rank;
    const auto failures = torchrun::ReadFailures(verdict, started_, local_ranks, ErrorFiles(verdict));
    if (!failures) {
      fmt::print(stderr, "dtrun: {}\n", failures.error().text);
      return;
    }
    if (!*failures) return;
    output::WriteWithin(STDERR_FILENO,
                        output::Tamed(torchrun::Summary(arguments_.training_script, **failures)));
    HandOn(torchrun::RootErrorFile(**failures));
  }

  // Whoever started torchrun may have asked for the cause too.
  static void HandOn(const std::string& error) {
    const char* path = std::getenv(kErrorFile);
    if (path == nullptr || *path == '\0' || error.empty()) return;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (!(file << error << std::flush)) {
      fmt::print(stderr, "dtrun: {}: cannot write '{}'\n", kErrorFile, path);
    }
  }

  const torchrun::Arguments& arguments_;
  const bool keeps_logs_;
  const std::vector<std::string> notes_;
  plan::Plan plan_;  // of the hosts that there are
  job::RunRequest request_;
  std::string run_dir_;
  std::time_t started_ = 0;
};

int Explain(const Error& error) {
  fmt::print(stderr, "dtrun: {}\n", error.text);
  return kUserError;
}

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

node::OwnStart OwnStartOf(const torchrun::Arguments& asked) {
  node::OwnStart own;
  own.processes = static_cast<int>(torchrun::ParseInt(asked.nproc_per_node).value_or(0));
  if (asked.run_path) return own;  // its command is the interpreter's own
  own.command = {asked.training_script};
  own.command.insert(own.command.end(), asked.training_script_args.begin(), asked.training_script_args.end());
  return own;
}

int Complain(Program program, const std::string& text) {
  fmt::print(stderr, "{}{}: error: {}\n", torchrun::Usage(program), torchrun::ProgramName(program), text);
  return kUserError;
}

}  // namespace

int Torchrun(Program program, const std::vector<std::string>& words, Purpose purpose) {
  std::map<std::string, std::string> environment = launch::Environment();
  const auto parsed = torchrun::Parse(program, words, environment);
  if (!parsed) return Complain(program, parsed.error().text);
  if (parsed->help) {
    fmt::print("{}", torchrun::Help(program));
    return 0;
  }
  const torchrun::Arguments& asked = parsed->arguments;
  std::error_code failure;
  if (asked.log_dir && std::filesystem::is_regular_file(*asked.log_dir, failure)) {
    return Complain(program, fmt::format("{}={}: it is a file; name a folder",
                                         asked.origins.find("log_dir")->second.place, *asked.log_dir));
  }
  const torchrun::Surroundings here = Look(asked, std::move(environment));
  auto translated = torchrun::Translate(asked, here);
  if (!translated) return Complain(program, translated.error().text);

  ConfigArguments arguments;
  arguments.base = std::move(translated->base);
  arguments.given = std::move(translated->given);
  auto preparation = LoadOrExplain(arguments);
  if (!preparation) return kUserError;
  const config::Settings& settings = preparation->settings();
  const launch::KeyRule rule = RuleOf(*translated);
  const std::string note = launch::HasClusterKey(settings) ? "" : translated->secret.note;
  if (purpose == Purpose::kRun) {
    const auto join_request = launch::JoinRequestOf(settings, rule);
    if (!join_request) return Explain(join_request.error());
    if (*join_request) {
      if (!note.empty()) fmt::print(stderr, "dtrun: {}: note: {}\n", hosts::HostName(), note);
      preparation.reset();  // with the child that describes the backend
      ::unsetenv(launch::kClusterKey);
      const int code = node::Guarded([&](process::Lifeline& lifeline) {
        return node::Serve(**join_request, OwnStartOf(asked), lifeline);
      });
      return code == 0 || code == kUserError ? code : kFailed;
    }
  }
  auto plan = purpose == Purpose::kRun ? preparation->PlanOfRun() : preparation->MakePlan();
  if (!plan) return Explain(plan.error());
  std::vector<std::string> notes = std::move(translated->notes);
  if (purpose != Purpose::kRun) {
    plan->notes.insert(plan->notes.end(), notes.begin(), notes.end());
    fmt::print("{}", purpose == Purpose::kPlanJson ? plan::ToJson(*plan) : plan::ToText(*plan));
    return 0;
  }
  // In a folder that all may write to, logs are for the user alone.
  if (plan->log_dir.starts_with(here.log_base + "/") && ::mkdir(here.log_base.c_str(), 0700) != 0) {
    const Error error = Error::System(fmt::format("cannot create '{}'", here.log_base), errno);
    fmt::print(stderr, "dtrun: {}; choose another folder with --log-dir or TMPDIR\n", error.text);
    return kUserError;
  }
  auto restart = launch::RestartPolicyOf(settings);
  if (!restart) return Explain(restart.error());
  auto stall = launch::StallPolicyOf(settings);
  if (!stall) return Explain(stall.error());
  auto cluster = launch::ClusterOf(settings, rule);
  if (!cluster) return Explain(cluster.error());
  if (*cluster && !note.empty()) notes.push_back(note);
  ::unsetenv(launch::kClusterKey);  // has been read
  TorchrunJob job(
      asked, translated->keeps_logs, std::move(notes),
      {std::move(*plan),
       std::move(*restart),
       {},
       std::move(*cluster),
       [&](const std::vector<plan::HostOffer>& offers, const std::vector<std::string>& answers,
           const network::Decision* network) { return preparation->PlanOfRun(offers, answers, network); },
       [&](const std::vector<plan::HostOffer>& offers) { return preparation->PreflightRequests(offers); },
       verdict::IsolationPolicyNamed(settings.Text("job.isolated_ranks")),
       *stall});
  const int code = node::Guarded([&](process::Lifeline& lifeline) { return job.Run(lifeline); });
  return code == 0 || code == kUserError ? code : kFailed;
}

}  // namespace dtrun::cli
