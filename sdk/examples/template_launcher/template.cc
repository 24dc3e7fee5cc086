// template.cc - a launcher that starts each rank by a command of the user's:
//
//   [launcher]
//   name = "template"
//   [launcher.options]
//   command = ["numactl", "--cpunodebind=${LOCAL_RANK}", "{}"]
//
// "{}" becomes the job's command with its arguments, ${NAME} a number of the rank.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin.hpp"

namespace {

namespace sdk = dtrun::sdk;
using Variables = std::vector<std::pair<std::string, std::string>>;

class Template final : public sdk::Launcher {
 public:
  Template(const sdk::Host&, const sdk::Options& options) : options_(options) {}

  void Plan(const sdk::Job& job, const sdk::PlanSink& sink) override {
    const auto words = options_.List("command");  // the constructor also runs where it is unset
    if (std::find(words.begin(), words.end(), "{}") == words.end()) {
      throw sdk::Failure(DTRUN_INVALID_ARGUMENT, options_.Place("command") +
                                                     ": no word of launcher.options.command is '{}', which "
                                                     "stands for the job's command");
    }
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      for (int local = 0; local < host.local_size; ++local) {
        sdk::Process process = job.ProcessFor(index, local);
        process.env = {
            {"RANK", std::to_string(process.rank)}, {"WORLD_SIZE", std::to_string(job.world_size())},
            {"LOCAL_RANK", std::to_string(local)},  {"LOCAL_WORLD_SIZE", std::to_string(host.local_size)},
            {"NODE_RANK", std::to_string(index)},   {"MASTER_ADDR", job.master_addr()},
            {"MASTER_PORT", job.master_port()}};
        process.argv = Command(words, job.argv(), process.env);
        sink.Add(process);
      }
    }
  }

 private:
  std::vector<std::string> Command(const std::vector<std::string>& words, const std::vector<std::string>& job,
                                   const Variables& variables) const {
    std::vector<std::string> command;
    for (const std::string& word : words) {
      if (word == "{}") {
        command.insert(command.end(), job.begin(), job.end());
      } else {
        command.push_back(Expanded(word, variables));
      }
    }
    return command;
  }

  std::string Expanded(std::string word, const Variables& variables) const {
    for (std::size_t at = word.find("${"); at != std::string::npos; at = word.find("${", at)) {
      const std::size_t end = word.find('}', at);
      const std::string name = end == std::string::npos ? word.substr(at) : word.substr(at + 2, end - at - 2);
      const std::string* value = nullptr;
      for (const auto& [known, text] : variables) value = known == name ? &text : value;
      if (value == nullptr) {
        throw sdk::Failure(DTRUN_INVALID_ARGUMENT, options_.Place("command") + ": '" + word +
                                                       "' has no variable '" + name +
                                                       "'; known are RANK, LOCAL_RANK, WORLD_SIZE, ...");
      }
      word.replace(at, end + 1 - at, *value);
      at += value->size();
    }
    return word;
  }

  const sdk::Options options_;
};

constexpr dtrun_option kOptions[] = {
    sdk::Option("command", DTRUN_TYPE_LIST, nullptr, "words that start a rank; \"{}\" is the job's command")
        .Flags(DTRUN_OPTION_REQUIRED)};

}  // namespace

DTRUN_SDK_PLUGIN(Template, "template", "1.0", "dtrun examples", "Apache-2.0",
                 "starts each rank by a command of yours", kOptions, 1)
