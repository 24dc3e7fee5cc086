#include "tools/dtrun/explain_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/failures/report.h"
#include "core/verdict/verdict.h"

namespace dtrun::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kNotRecorded[] = "not recorded";

// Whether this user may read `path`; else whose it is.
Status MayRead(const fs::path& path) {
  struct stat info {};
  if (::access(path.c_str(), R_OK) == 0 || errno != EACCES) return {};
  const std::string owner = ::stat(path.c_str(), &info) == 0
                                ? fmt::format("it belongs to user {}", info.st_uid)
                                : "a folder above it is closed";
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("'{}' cannot be read: permission denied, {}; ask its owner, whose next run may "
                           "share its folder by logs.mode",
                           path.string(), owner)};
}

Result<Json> ReadJson(const fs::path& file) {
  std::error_code failure;
  if (Status may = MayRead(file); !may) return may.error();
  std::ifstream stream(fs::is_regular_file(file, failure) ? file : fs::path());
  if (!stream) {
    return Error{DTRUN_NOT_FOUND, fmt::format("'{}' cannot be read; '{}' is no run directory of dtrun",
                                              file.string(), file.parent_path().string())};
  }
  Json json = Json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("'{}' is not JSON", file.string())};
  return json;
}

// The text at `path` ("/backend/name"); empty when there is none.
std::string TextAt(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  if (!json.contains(pointer)) return {};
  const Json& found = json.at(pointer);
  return found.is_string() ? found.get<std::string>() : found.is_null() ? "" : found.dump();
}

// What the run directory holds.
struct Files {
  Json plan, config;
  std::optional<Json> verdict;
  std::optional<Json> network;  // of several hosts
};

// Where the last generation has its logs, and its plan when that is another than the first.
fs::path LogFolder(const fs::path& run) {
  for (int generation = 1;; ++generation) {
    if (!fs::exists(run / fmt::format("generation-{}", generation))) {
      return generation == 1 ? run : run / fmt::format("generation-{}", generation - 1);
    }
  }
}

// "gloo (train.toml:4:1)": an option's value, and where it came from.
std::string OptionText(const Json& config, const std::string& key) {
  if (!config.contains(key)) return {};
  const Json& option = config.at(key);
  return fmt::format("{} = {} ({})", key, TextAt(option, "/value"), TextAt(option, "/origin"));
}

std::string StateText(const std::optional<Json>& verdict) {
  if (!verdict) return "running, or ended without a verdict";
  const std::string result = TextAt(*verdict, "/result");
  if (result == "not started") return "not started: " + TextAt(*verdict, "/error");
  std::string text = result;
  if (verdict->contains("duration_seconds") && verdict->at("duration_seconds").is_number()) {
    const std::chrono::duration<double> time(verdict->at("duration_seconds").get<double>());
    text += " after " + verdict::FormatElapsed(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  }
  const std::string exit_class = TextAt(*verdict, "/exit_class");
  return exit_class.empty()
             ? text
             : fmt::format("{}, exit code {} ({})", text, TextAt(*verdict, "/exit_code"), exit_class);
}

// "node0 2, node1 2"
std::string HostsText(const Json& plan) {
  std::string text;
  for (const Json& host : plan.value("hosts", Json::array())) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", TextAt(host, "/name"),
                   TextAt(host, "/local_size"));
  }
  return text;
}

// The variables that choose interfaces and paths for vendor libraries, by host where they differ.
std::string VariablesText(const Json& plan, const std::vector<std::string>& names) {
  std::map<std::string, std::set<std::string>> hosts_of;  // "NAME=value" to hosts
  std::set<std::string> hosts;
  for (const Json& process : plan.value("processes", Json::array())) {
    const std::string host = TextAt(process, "/host");
    hosts.insert(host);
    const Json variables = process.value("env", Json::object());
    for (const std::string& name : names) {
      if (variables.contains(name))
        hosts_of[name + "=" + TextAt(variables, ("/" + name).c_str())].insert(host);
    }
  }
  std::string text;
  for (const auto& [setting, on] : hosts_of) {
    text += (text.empty() ? "" : ", ") + setting;
    if (on.size() < hosts.size()) {
      std::string list;
      for (const std::string& host : on) list += (list.empty() ? "" : " ") + host;
      text += " on " + list;
    }
  }
  return text;
}

// "eth0 10.5.0.1", of a host of network.json.
std::string CardText(const Json& host) { return TextAt(host, "/interface") + " " + TextAt(host, "/address"); }

// Why it is that one.
std::string ChosenText(const Json& host) {
  for (const Json& candidate : host.value("candidates", Json::array())) {
    if (TextAt(candidate, "/verdict") == "chosen")
      return fmt::format("{} chosen, {}", TextAt(candidate, "/interface"), TextAt(candidate, "/reason"));
  }
  return "chosen by the connectivity check";
}

Choice Interface(const Files& files) {
  const std::string fact = TextAt(files.plan, "/backend/facts/interface");
  const std::string set =
      VariablesText(files.plan, {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME",
                                 "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include", "HOROVOD_GLOO_IFACE"});
  std::string reason = OptionText(files.config, "backend.options.interface");
  std::string proven;
  for (const Json& host : files.network ? files.network->value("hosts", Json::array()) : Json::array()) {
    proven += fmt::format("{}{} {}", proven.empty() ? "" : ", ", TextAt(host, "/name"), CardText(host));
  }
  for (const char* const key : {"backend.options.devices", "network.interface"}) {
    if (reason.empty()) reason = OptionText(files.config, key);
  }
  if (reason.empty()) reason = "no option chooses one";
  if (!set.empty()) reason += "; ranks see " + set;
  if (!proven.empty() && fact.empty()) reason = "tested between all hosts before ranks started; " + reason;
  return {"interface", fact.empty() ? proven : fact, reason};
}

bool LocalIsNone(const Files& files) { return TextAt(files.config, "/comm.local/value") == "\"none\""; }

// What carries the bytes of a backend between hosts, as far as it has said.
std::string WireText(const Files& files) {
  const std::string wire = TextAt(files.plan, "/backend/facts/wire");
  return TextAt(files.plan, "/backend/name") + (wire.empty() ? "" : " over " + wire);
}

// No rank has joined it, so the program communicated by other means, or not at all.
bool BackendWasNotUsed(const Files& files) {
  const Json ranks = files.verdict ? files.verdict->value("ranks", Json::array()) : Json::array();
  return !ranks.empty() &&
         std::ranges::none_of(ranks, [](const Json& rank) { return rank.value("joined", true); });
}

// For the ranks of each host: how they reach each other, and how others reach them.
void AddPeers(const Files& files, std::vector<Choice>* choices) {
  std::map<std::string, std::vector<int>> ranks_of;  // by host
  for (const Json& process : files.plan.value("processes", Json::array())) {
    for (int i = 0; i < process.value("rank_count", 1); ++i)
      ranks_of[TextAt(process, "/host")].push_back(process.value("rank", 0) + i);
  }
  const bool device = TextAt(files.plan, "/backend/facts/memory") == "device";
  const bool shared = !LocalIsNone(files) && !device;
  const std::string rdma = TextAt(files.plan, "/backend/facts/rdma");
  const Json hosts = files.network ? files.network->value("hosts", Json::array()) : Json::array();
  for (const Json& host : files.plan.value("hosts", Json::array())) {
    const std::string name = TextAt(host, "/name");
    const std::vector<int>& ranks = ranks_of[name];
    if (ranks.empty()) continue;
    Choice choice{"peers", fmt::format("{} of {}", verdict::FoldRanks(ranks), name), ""};
    if (ranks.size() > 1) {
      choice.value += fmt::format(": {} among themselves",
                                  shared ? "shared memory" : TextAt(files.plan, "/backend/name"));
      choice.reason = OptionText(files.config, "comm.local");
    }
    const auto card =
        std::ranges::find_if(hosts, [&](const Json& one) { return TextAt(one, "/name") == name; });
    if (card != hosts.end()) {
      choice.value += fmt::format("{} other hosts by {}, at {}", ranks.size() > 1 ? ";" : ":",
                                  WireText(files), CardText(*card));
      choice.reason += (choice.reason.empty() ? "" : "; ") + ChosenText(*card);
      if (rdma.starts_with("no")) choice.reason += "; no RDMA" + rdma.substr(2);
    }
    choices->push_back(std::move(choice));
  }
}

Choice Transport(const Files& files) {
  const std::string local = TextAt(files.plan, "/backend/facts/local");
  std::string reason = OptionText(files.config, "comm.local");
  const std::string transports = OptionText(files.config, "backend.options.transports");
  if (!transports.empty()) reason += (reason.empty() ? "" : "; ") + transports;
  return {"transport", local, reason};
}

// Of the backend what it has said, of dtrun's layers what they do around it.
Choice Algorithm(const Files& files) {
  const std::string fact = TextAt(files.plan, "/backend/facts/algorithm");
  const bool device = TextAt(files.plan, "/backend/facts/memory") == "device";
  if (LocalIsNone(files) || device) return {"algorithm", fact, ""};
  if (files.plan.value("hosts", Json::array()).size() == 1)
    return {"algorithm", "dtrun's, in shared memory", OptionText(files.config, "comm.local")};
  return {"algorithm", "a step inside each host, one among a rank of each host, one back",
          fact.empty() ? "" : "between hosts: " + fact};
}

Choice PeerAccess(const Files& files) {
  const std::string fact = TextAt(files.plan, "/backend/facts/p2p");
  std::string reason = OptionText(files.config, "backend.options.p2p");
  const std::string set = VariablesText(
      files.plan, {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "UCX_TLS", "DTRUN_P2P"});
  if (BackendWasNotUsed(files)) {
    return {
        "p2p", fact,
        set.empty() ? reason : fmt::format("{}{}ranks see {}", reason, reason.empty() ? "" : "; ", set)};
  }
  if (TextAt(files.plan, "/backend/facts/memory") != "device") {
    return {"p2p", fact.empty() ? "not used" : fact,
            "this backend moves host memory" + (reason.empty() ? "" : "; " + reason) +
                (set.empty() ? "" : "; programs see " + set)};
  }
  reason += set.empty() ? "; the library asks the driver for each pair of GPUs" : "; ranks see " + set;
  return {"p2p", fact, reason};
}

Choice Backend(const Files& files) {
  std::string reason = OptionText(files.config, "backend.name");
  const std::string chosen = TextAt(files.plan, "/backend/facts/chosen");
  if (!chosen.empty()) reason += "; " + chosen;
  if (BackendWasNotUsed(files) && TextAt(files.plan, "/backend/name") != "none")
    reason +=
        "; not used: no rank called dtrun_init, and how a program communicates by itself is not recorded";
  return {"backend", TextAt(files.plan, "/backend/name"), reason};
}

std::vector<Choice> ChoicesOf(const Files& files) {
  std::vector<Choice> choices;
  choices.push_back({"ranks",
                     fmt::format("{} ({})", TextAt(files.plan, "/world_size"), HostsText(files.plan)),
                     OptionText(files.config, "job.processes_per_host")});
  choices.push_back(Backend(files));
  choices.push_back({"library", TextAt(files.plan, "/backend/facts/library"),
                     TextAt(files.plan, "/backend/facts/library_path")});
  const bool used = !BackendWasNotUsed(files);
  if (used) choices.push_back(Transport(files));
  if (used) AddPeers(files, &choices);
  choices.push_back(Interface(files));
  if (used) choices.push_back(Algorithm(files));
  choices.push_back(PeerAccess(files));
  for (const Json& note : files.plan.value("notes", Json::array())) {
    if (note.is_string()) choices.push_back({"note", note.get<std::string>(), ""});
  }
  return choices;
}

Result<std::vector<RankFinding>> FindingsOf(const fs::path& run, const Json& plan) {
  const fs::path folder = LogFolder(run);
  std::vector<RankFinding> findings;
  for (const Json& process : plan.value("processes", Json::array())) {
    const int rank = process.value("rank", 0);
    std::vector<fs::path> logs;
    for (const char* const stream : {"err", "out"}) {
      fs::path log = folder / fmt::format("rank-{}.{}", rank, stream);
      if (fs::is_regular_file(log)) logs.push_back(std::move(log));
    }
    auto known = failures::FindInLogs(logs, failures::Whose::kNamed);
    if (!known) return known.error();
    if (*known) findings.push_back({rank, **std::move(known)});
  }
  return findings;
}

// The verdict promises the logs; they may have been deleted since, or belong to a folder that was moved.
std::string WithoutLostLogs(std::string verdict) {
  constexpr std::string_view kAll = "(all of it: ", kStar = ".*)";
  for (auto at = verdict.find(kAll); at != std::string::npos; at = verdict.find(kAll, at + 1)) {
    const auto path_at = at + kAll.size(), end = verdict.find(kStar, path_at);
    if (end == std::string::npos) break;
    const std::string path = verdict.substr(path_at, end - path_at);
    std::error_code failure;
    if (fs::exists(path + ".out", failure) || fs::exists(path + ".err", failure)) continue;
    verdict.replace(at, kAll.size(), "(the rest is gone: there is no ");
  }
  return verdict;
}

Result<RunStory> ReadRecords(const fs::path& folder) {
  if (Status may = MayRead(folder); !may) return may.error();
  Files files;
  RunStory story;
  if (fs::exists(folder / "verdict.json")) {
    auto verdict = ReadJson(folder / "verdict.json");
    if (!verdict) return verdict.error();
    files.verdict = *std::move(verdict);
    story.job = TextAt(*files.verdict, "/job");
  }
  story.state = StateText(files.verdict);
  if (files.verdict) story.verdict = WithoutLostLogs(TextAt(*files.verdict, "/text"));
  // A job that could not start may have left a verdict alone.
  if (files.verdict && !fs::exists(folder / "plan.json")) return story;
  // A later generation has one of its own where something has changed.
  const fs::path latest = LogFolder(folder) / "plan.json";
  auto plan = ReadJson(fs::exists(latest) ? latest : folder / "plan.json");
  if (!plan) return plan.error();
  auto config = ReadJson(folder / "config.json");
  if (!config) return config.error();
  files.plan = *std::move(plan);
  files.config = *std::move(config);
  if (fs::exists(folder / "network.json")) {
    auto network = ReadJson(folder / "network.json");
    if (!network) return network.error();
    files.network = *std::move(network);
  }
  story.job = TextAt(files.plan, "/job");
  story.choices = ChoicesOf(files);
  story.gpus = ReadGpus(files.plan);
  if (std::ifstream table(folder / "network.txt"); table)
    story.network.assign(std::istreambuf_iterator<char>(table), std::istreambuf_iterator<char>());
  auto findings = FindingsOf(folder, files.plan);
  if (!findings) return findings.error();
  story.findings = *std::move(findings);
  return story;
}

}  // namespace

std::vector<fs::path> OwnFailuresOf(const fs::path& folder) {
  const auto config = ReadJson(folder / "config.json");
  const Json list =
      Json::parse(config ? TextAt(*config, "/failures.path/value") : "", nullptr, /*allow_exceptions=*/false);
  std::vector<fs::path> files;
  for (const Json& file : list.is_array() ? list : Json::array()) {
    if (file.is_string()) files.emplace_back(file.get<std::string>());
  }
  return files;
}

Result<RunStory> ReadRun(const fs::path& folder) {
  try {
    return ReadRecords(folder);
  } catch (const fs::filesystem_error& error) {
    return Error::System(fmt::format("read '{}'", folder.string()), error.code().value());
  } catch (const nlohmann::json::exception& error) {  // a record that is JSON and none of dtrun's
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("the records in '{}' are not dtrun's, or changed since: {}", folder.string(),
                             error.what())};
  }
}

std::string ToText(const RunStory& story) {
  std::string out = fmt::format("job '{}': {}\n{}", story.job, story.state, story.verdict);
  if (!out.ends_with('\n')) out += '\n';
  const auto append = std::back_inserter(out);
  for (const Choice& choice : story.choices) {
    fmt::format_to(append, "  {:<10} {}{}\n", choice.topic,
                   choice.value.empty() ? kNotRecorded : choice.value,
                   choice.reason.empty() ? "" : "\n             because: " + choice.reason);
  }
  out += ToText(story.gpus);
  out += story.network;
  for (const auto& [rank, known] : story.findings) {
    fmt::format_to(append, "rank {}: {} ({}; {})\n    | {}\n  next: {}\n", rank, known.finding.what,
                   known.finding.failure->id,
                   failures::PlaceText(known.file.filename().string(), known.finding), known.finding.line,
                   known.finding.fix);
  }
  return out;
}

Json ToJson(const RunStory& story) {
  Json choices = Json::array();
  for (const Choice& choice : story.choices) {
    choices.push_back({{"topic", choice.topic},
                       {"value", choice.value.empty() ? Json(nullptr) : Json(choice.value)},
                       {"reason", choice.reason}});
  }
  Json findings = Json::array();
  for (const auto& [rank, known] : story.findings) {
    Json one = failures::ToJson(known.finding);
    one["rank"] = rank;
    one["file"] = known.file.string();
    findings.push_back(std::move(one));
  }
  return {{"job", story.job},
          {"state", story.state},
          {"verdict", story.verdict.empty() ? Json(nullptr) : Json(story.verdict)},
          {"choices", choices},
          {"gpu_peers", ToJson(story.gpus)},
          {"network", story.network.empty() ? Json(nullptr) : Json(story.network)},
          {"findings", findings}};
}

}  // namespace dtrun::cli
