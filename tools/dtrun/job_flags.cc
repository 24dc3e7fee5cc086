#include "tools/dtrun/job_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/base/number.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"

namespace dtrun::cli {
namespace {

std::vector<spec::Given> GivenBy(const ConfigArguments& arguments) {
  std::vector<spec::Given> given;
  const auto typed = [&](const std::string& flag, const std::string& value) {
    const auto found = arguments.spelled.find(flag + " " + value);
    return found == arguments.spelled.end() ? flag : found->second;
  };
  const auto add = [&](const char* key, const char* flag, const std::string& value) {
    if (!value.empty()) given.push_back({key, value, {DTRUN_ORIGIN_COMMAND_LINE, typed(flag, value)}});
  };
  add(IsDigits(arguments.ranks) ? "job.ranks" : "job.processes_per_host", "--ranks", arguments.ranks);
  add("job.processes_per_host", "--processes-per-host", arguments.processes_per_host);
  std::vector<std::string> hosts;
  std::string flag;  // of the first one
  for (const std::string& one : arguments.hosts) {
    if (IsDigits(one)) {
      add("cluster.host_count", "--hosts", one);
    } else {
      if (flag.empty()) flag = typed("--hosts", one);
      for (const std::string_view host : Split(one, ',')) hosts.emplace_back(host);
    }
  }
  if (!hosts.empty()) {
    given.push_back({"cluster.hosts", std::move(hosts), {DTRUN_ORIGIN_COMMAND_LINE, flag}});
  }
  add("cluster.hostfile", "--hostfile", arguments.hostfile);
  add("cluster.host_index", "--host-index", arguments.host_index);
  add("job.time_limit", "--time-limit", arguments.time_limit);
  add("backend.torch", "--torch-backend", arguments.torch_backend);
  add("output.color", "--color", arguments.color);
  return given;
}

// -n counts all ranks; --processes-per-host then only limits the ranks of a host.
void WarnOfIdleLimit(const ConfigArguments& arguments) {
  const auto ranks = NumberOf<int>(arguments.ranks), most = NumberOf<int>(arguments.processes_per_host);
  if (!ranks || !most || *ranks >= *most) return;
  PrintMessage(
      "dtrun: warning: -n {0} counts all ranks, and --processes-per-host {1} only limits the ranks of a "
      "host: the job has {0} rank{2}; omit -n for {1} on each host\n",
      *ranks, *most, *ranks == 1 ? "" : "s");
}

}  // namespace

CLI::Option* AddRepeated(CLI::App* verb, const char* names, std::vector<std::string>* to, const char* help) {
  return verb->add_option(names, *to, help)->expected(1)->take_all()->allow_extra_args(false);
}

void AddOverrides(CLI::App* verb, ConfigArguments* to) {
  AddRepeated(verb, "--set", &to->sets, "Set any option (dtrun config list), over the config; repeatable")
      ->type_name("KEY=VALUE");
  AddRepeated(verb, "--plugin-dir", &to->plugin_dirs, "Folder searched for plugins first; repeatable")
      ->type_name("DIR")
      ->check(CLI::Validator(
          [](const std::string& folder) {
            std::error_code none;
            return std::filesystem::is_directory(folder, none)
                       ? std::string()
                       : fmt::format("there is no folder '{}'; name the one with libdtrun_KIND_NAME.so",
                                     folder);
          },
          ""));
}

void AddJobFlags(CLI::App* verb, ConfigArguments* to) {
  verb->add_option("-c,--config", to->file, "Config of the job; the same as JOB.toml in place of a program")
      ->type_name("FILE");
  verb->add_option("-n,--np,--ranks", to->ranks,
                   "Ranks on all hosts together; gpu, cpu or auto: one for each GPU or core")
      ->type_name("N");
  verb->add_option("--processes-per-host", to->processes_per_host,
                   "Ranks on each host, a number or gpu, cpu, auto")
      ->type_name("N");
  AddRepeated(verb, "-N,-H,--host,--hosts", &to->hosts,
              "Hosts and their slots, such as a,b:4; or N for the first N hosts")
      ->type_name("HOSTS");
  verb->add_option("--hostfile", to->hostfile, "File with a host on each line: NAME, NAME slots=N or NAME:N")
      ->type_name("FILE");
  verb->add_option("--host-index", to->host_index,
                   "Number of this host, from 0, where every host runs dtrun itself")
      ->type_name("K");
  verb->add_option(
          "--time-limit", to->time_limit,
          "Longest time that the job may take, with all restarts, such as 2h; then dtrun exits with 124")
      ->type_name("DURATION");
  verb->add_option(
          "--torch-backend", to->torch_backend,
          "Backend of torch.distributed in Python programs that request gloo or none: dtrun, or script for "
          "the one that the program requests")
      ->type_name("NAME");
  AddOverrides(verb, to);
}

launch::Preparation Load(const ConfigArguments& arguments) {
  spec::Request request = arguments;
  std::vector<spec::Given> given = GivenBy(arguments);
  request.given.insert(request.given.begin(), std::make_move_iterator(given.begin()),
                       std::make_move_iterator(given.end()));
  return launch::Preparation::Load(std::move(request), arguments.plugin_dirs);
}

std::optional<launch::Preparation> LoadOrExplain(const ConfigArguments& arguments) {
  WarnOfIdleLimit(arguments);
  launch::Preparation preparation = Load(arguments);
  if (preparation.problems().empty()) return preparation;
  PrintProblems(preparation.problems());
  return std::nullopt;
}

int Complain(const Error& error) { return Complain(error.text); }

int Complain(const std::string& text) {
  PrintMessage("dtrun: {}\n", text);
  return kUserError;
}

int PrintProblems(const std::vector<spec::Problem>& problems) {
  WriteMessage(spec::Render(problems));
  return kUserError;
}

}  // namespace dtrun::cli
