#include "core/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/json.h"
#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/contract/environment.h"

namespace dtrun::plan {
namespace {

std::string ReplaceTokens(std::string text, const std::map<std::string, std::string>& tokens) {
  for (const auto& [token, value] : tokens) text = ReplaceAll(std::move(text), token, value);
  return text;
}

// Quotes control characters, which a terminal would obey, as bash's $'...'.
std::string QuoteControls(const std::string& word) {
  std::string out = "$'";
  for (char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "'";
}

// Quotes a word for a shell; returns it unchanged if it needs no quotes.
std::string Quote(const std::string& word) {
  if (Printable(word) != word) return QuoteControls(word);
  const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`|&;<>()*?[]#~!{}") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// A ⟦token⟧ is not the secret itself.
std::string Shown(const std::string& name, const std::string& value) {
  return value.starts_with("⟦") ? value : MaskValue(name, value);
}

std::map<std::string, std::string> Shown(const ProcessVariables& variables) {
  std::map<std::string, std::string> shown;
  for (const auto& [name, value] : variables) shown[name] = Shown(name, value);
  return shown;
}

// The variables that all processes share with equal values; empty for one process.
std::map<std::string, std::string> Common(const std::vector<Process>& processes) {
  if (processes.size() < 2) return {};
  const ProcessVariables& first = processes.front().env;
  std::map<std::string, std::string> common(first.begin(), first.end());
  for (const Process& process : processes) {
    const auto keep_if_same = [&](const auto& variable) {
      const auto one = common.find(variable.first);
      if (one == common.end()) return;
      if (!process.env.contains(one->first) || process.env.at(one->first) != one->second) common.erase(one);
    };
    if (process.env.shared() == first.shared()) {  // they differ only in their own variables
      std::ranges::for_each(process.env.own(), keep_if_same);
      std::ranges::for_each(first.own(), keep_if_same);
    } else {
      std::ranges::for_each(std::map(common), keep_if_same);
    }
  }
  return common;
}

// The variables that a user and frameworks know, then those for libdtrun. DTRUN_BACKEND_OPTIONS and similar
// ones are not shown in full: `dtrun config explain` shows the values.
std::string VariablesText(const ProcessVariables& variables,
                          const std::map<std::string, std::string>& without = {}) {
  std::string out;
  for (const bool own : {false, true}) {
    for (const auto& [name, value] : variables) {
      if (without.contains(name) || name.starts_with("DTRUN_") != own) continue;
      const bool record = name == contract::kBackendOptions || name == contract::kDeviceBackendOptions;
      out +=
          fmt::format("  env    {}={}\n", name, record ? "(backend.options)" : Printable(Shown(name, value)));
    }
  }
  return out;
}

// A longer text is not readable: the first processes and the last one show what ranks get.
constexpr std::size_t kMostInFull = 64;
constexpr std::size_t kFewOfMany = 16;

std::string ProcessText(const Plan& plan, const Process& process,
                        const std::map<std::string, std::string>& common) {
  std::string out;
  auto append = std::back_inserter(out);
  const Host& host = plan.hosts[static_cast<std::size_t>(process.host)];
  if (process.rank_count == 1) {
    fmt::format_to(append, "\nrank {} on {} (local rank {})", process.rank, host.name, process.local_rank);
  } else {
    fmt::format_to(append, "\nranks {}-{} in one process on {}", process.rank,
                   process.rank + process.rank_count - 1, host.name);
  }
  fmt::format_to(append, "\n  argv   ");
  bool first = true;
  for (const std::string& argument : MaskArguments(process.argv)) {
    fmt::format_to(append, "{}{}", std::exchange(first, false) ? "" : " ", Quote(argument));
  }
  fmt::format_to(append, "\n  cwd    {}\n  bind   {}\n", process.cwd,
                 process.binding.empty() ? "none" : process.binding);
  out += VariablesText(process.env, common);
  for (const std::string& name : process.unset) fmt::format_to(append, "  unset  {}\n", Printable(name));
  return out;
}

}  // namespace

int Plan::world_size() const { return hosts.empty() ? 0 : hosts.back().first_rank + hosts.back().local_size; }

const Host* Plan::HostOf(int rank) const {
  const auto host = std::ranges::find_if(hosts, [rank](const Host& one) {
    return rank >= one.first_rank && rank < one.first_rank + one.local_size;
  });
  return host == hosts.end() ? nullptr : &*host;
}

std::string TaskPortToken(int rank) { return fmt::format("⟦port_{}⟧", rank); }

std::string HostAddressToken(std::size_t host) { return fmt::format("⟦address_{}⟧", host); }

std::string WorldText(const Plan& plan) {
  constexpr std::size_t kMost = 8;
  std::string hosts;
  for (std::size_t i = 0; i < plan.hosts.size() && i < kMost; ++i) {
    hosts += (i == 0 ? "" : ", ") + plan.hosts[i].name;
    if (plan.hosts.size() > 1) hosts += fmt::format(" {}", plan.hosts[i].local_size);
  }
  if (plan.hosts.size() > kMost) hosts += ", …";
  return fmt::format("{} rank{} on {} host{} ({})", plan.world_size(), plan.world_size() == 1 ? "" : "s",
                     plan.hosts.size(), plan.hosts.size() == 1 ? "" : "s", hosts);
}

std::string RouteText(const Route& route) {
  return fmt::format("{} memory: {}{}", route.memory, route.by, route.why.empty() ? "" : ", " + route.why);
}

std::vector<int> TaskPortsUsed(const Plan& plan) {
  static constexpr std::string_view kStart = "⟦port_";
  std::set<int> ranks;
  const auto look = [&](const std::string& text) {
    for (std::size_t at = text.find(kStart); at != std::string::npos; at = text.find(kStart, at)) {
      at += kStart.size();
      std::string_view rest = std::string_view(text).substr(at);
      const int rank = TakeNumber<int>(&rest).value_or(-1);
      if (rank >= 0 && rank < plan.world_size()) ranks.insert(rank);
    }
  };
  for (const Process& process : plan.processes) {
    for (const std::string& argument : process.argv) look(argument);
    for (const auto& [name, value] : process.env) look(value);
  }
  return {ranks.begin(), ranks.end()};
}

Plan Resolve(const Plan& plan, const std::map<std::string, std::string>& tokens) {
  Plan out = plan;
  auto shown = tokens;  // every user on the host can read a command line
  shown.erase(kTokenJobKey);
  ProcessVariables::Known known;
  for (Process& process : out.processes) {
    for (std::string& argument : process.argv) argument = ReplaceTokens(std::move(argument), shown);
    process.env.Replace([&](const std::string& value) { return ReplaceTokens(value, tokens); }, &known);
    process.cwd = ReplaceTokens(std::move(process.cwd), tokens);
  }
  return out;
}

bool ShowsFact(bool idle, std::string_view key) {
  constexpr std::string_view kOfItself[] = {"library", "library_path", "local", "chosen"};
  return !idle || std::ranges::find(kOfItself, key) != std::end(kOfItself);
}

std::string ToText(const Plan& plan) {
  std::string out = fmt::format("{}: {} rank{} on {} host{}, launcher {}, backend {}\n", plan.job,
                                plan.world_size(), plan.world_size() == 1 ? "" : "s", plan.hosts.size(),
                                plan.hosts.size() == 1 ? "" : "s", plan.launcher, plan.backend);
  auto append = std::back_inserter(out);
  for (const auto& [key, value] : plan.backend_facts) {
    if (ShowsFact(plan.backend_idle, key)) fmt::format_to(append, "  {}: {}\n", key, value);
  }
  for (const Route& route : plan.routes) fmt::format_to(append, "  {}\n", RouteText(route));
  for (const auto& [key, value] : plan.device_facts)
    fmt::format_to(append, "  {} {}: {}\n", plan.device_backend, key, value);
  fmt::format_to(append, "  binding: {}\n", plan.binding);
  if (plan.pmi != pmi::Kind::kNone) fmt::format_to(append, "  pmi: {}\n", pmi::KindName(plan.pmi));
  for (const std::string& warning : plan.warnings) fmt::format_to(append, "  warning: {}\n", warning);
  for (const std::string& note : plan.notes) fmt::format_to(append, "  note: {}\n", note);
  fmt::format_to(append, "  logs: {}\n", plan.log_dir);
  const std::map<std::string, std::string> common = Common(plan.processes);
  if (!common.empty()) out += "\nevery process\n" + VariablesText(common);
  const std::size_t count = plan.processes.size();
  const std::size_t shown = count <= kMostInFull ? count : kFewOfMany;
  for (std::size_t i = 0; i < shown; ++i) out += ProcessText(plan, plan.processes[i], common);
  if (shown < count) {
    const Process& last = plan.processes.back();
    fmt::format_to(append, "\n... ranks {} to {}: dtrun plan --json has every process\n",
                   plan.processes[shown].rank, last.rank - 1);
    out += ProcessText(plan, last, common);
  }
  out += "\nA name in ⟦brackets⟧ is known only when the job starts.\n";
  return out;
}

std::string ToJson(const Plan& plan) {
  std::string text;
  WriteJson(plan, [&](std::string_view piece) { text += piece; });
  return text;
}

void WriteJson(const Plan& plan, const std::function<void(std::string_view)>& write) {
  Json out;
  out["job"] = plan.job;
  out["world_size"] = plan.world_size();
  out["launcher"] = plan.launcher;
  out["backend"] = {{"name", plan.backend}, {"facts", Json::object()}};
  for (const auto& [key, value] : plan.backend_facts) out["backend"]["facts"][key] = value;
  if (!plan.device_backend.empty()) {
    out["device_backend"] = {{"name", plan.device_backend}, {"facts", Json::object()}};
    for (const auto& [key, value] : plan.device_facts) out["device_backend"]["facts"][key] = value;
  }
  for (const Route& route : plan.routes)
    out["routes"].push_back({{"memory", route.memory}, {"by", route.by}, {"why", route.why}});
  out["binding"] = plan.binding;
  out["pmi"] = pmi::KindName(plan.pmi);
  out["warnings"] = plan.warnings;
  out["notes"] = plan.notes;
  out["withheld"] = plan.withheld;
  out["logs"] = plan.log_dir;
  out["grace_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(plan.grace).count();
  if (plan.memory != 0) out["memory_bytes"] = plan.memory;
  out["hosts"] = Json::array();
  for (const Host& host : plan.hosts) {
    out["hosts"].push_back({{"name", host.name},
                            {"first_rank", host.first_rank},
                            {"local_size", host.local_size},
                            {"cores", host.cores},
                            {"facts", Json::object()}});
    for (const auto& [key, value] : host.backend_facts) out["hosts"].back()["facts"][key] = value;
    for (const auto& [key, value] : host.device_facts) out["hosts"].back()["device_facts"][key] = value;
  }
  out["processes"] = Json::array();
  // The document ends with the empty list, which is opened and filled.
  const std::string document = JsonDocument(1, out);
  const std::size_t list = document.rfind("[]");
  if (plan.processes.empty()) return write(document);
  write(std::string_view(document).substr(0, list + 1));
  const char* before = "\n    ";
  for (const Process& process : plan.processes) {
    Json one = {{"rank", process.rank},
                {"local_rank", process.local_rank},
                {"rank_count", process.rank_count},
                {"host", plan.hosts[static_cast<std::size_t>(process.host)].name},
                {"argv", MaskArguments(process.argv)},
                {"cwd", process.cwd},
                {"binding", process.binding.empty() ? "none" : process.binding},
                {"env", Shown(process.env)}};
    if (!process.unset.empty()) one["unset"] = process.unset;
    std::string text = JsonText(one);
    text.pop_back();  // its newline; the other lines are followed by the list's indentation
    write(before);
    write(Indented(text, "    "));  // no JSON string contains a newline
    before = ",\n    ";
  }
  write("\n  ");
  write(std::string_view(document).substr(list + 1));
}

}  // namespace dtrun::plan
