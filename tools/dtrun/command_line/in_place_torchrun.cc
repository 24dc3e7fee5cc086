// Converts dtrun's own options before a torchrun command line to torchrun's variables and flags.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/text.h"
#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

constexpr std::string_view kVariables = "job.env.";

// NAME=VALUE before a command, quoted for a shell.
std::string Assigned(const std::string& name, const std::string& value) {
  return fmt::format("{}={} ", name, Quoted({value}));
}

// --set KEY=VALUE.
std::string VariableOf(const std::string& set) {
  const std::size_t equals = std::min(set.find('='), set.size());
  std::string key = set.substr(0, equals);
  const std::string value = equals < set.size() ? set.substr(equals + 1) : "";
  if (key.starts_with(kVariables)) return Assigned(key.substr(kVariables.size()), value);
  for (char& c : key) c = c == '.' ? '_' : ToUpper(c);
  return Assigned("DTRUN_CONFIG_" + key, value);
}

bool CountsRanks(std::string word) {
  std::ranges::replace(word, '_', '-');
  return word.starts_with("--nproc-per-node");
}

}  // namespace

std::string Splitter::AsTorchrun(bool old, const Words& rest) const {
  const bool counted = std::ranges::any_of(rest, CountsRanks);
  std::string variables, plugins;
  Words ours{"dtrun"}, ranks, left_out;
  for (std::size_t i = 0; i < out_.words.size(); ++i) {
    const std::string& word = out_.words[i];
    if (word == "plan" || word == "--json") {
      ours.push_back(word);
      continue;
    }
    const CLI::Option* option = at_->get_option_no_throw(word);
    if (option == nullptr) option = grammar_.root->get_option_no_throw(word);
    if (option == nullptr || option->get_items_expected_max() == 0) {
      left_out.push_back(word);
      continue;
    }
    const std::string& value = out_.words[++i];
    if (option->check_name("--set")) {
      variables += VariableOf(value);
    } else if (option->check_name("--torch-backend")) {
      variables += Assigned("DTRUN_CONFIG_BACKEND_TORCH", value);
    } else if (option->check_name("--plugin-dir")) {
      plugins += (plugins.empty() ? "" : ":") + value;
    } else if (option->check_name("--color")) {
      variables += Assigned("DTRUN_CONFIG_OUTPUT_COLOR", value);
    } else if (option->check_name("--ranks") || option->check_name("--processes-per-host")) {
      if (!counted) ranks = {"--nproc_per_node=" + value};
    } else if (!option->check_name("--hosts") || value != "1") {
      left_out.insert(left_out.end(), {word, value});
    }
  }
  if (!plugins.empty()) variables += Assigned("DTRUN_PLUGIN_PATH", plugins);
  ours.emplace_back(old ? "torch.distributed.launch" : "torchrun");
  ours.insert(ours.end(), ranks.begin(), ranks.end());
  ours.insert(ours.end(), rest.begin(), rest.end());
  std::string text = variables + Quoted(ours);
  if (!left_out.empty()) {
    text += fmt::format("\n  without {}, which torchrun's command line has no word for", Quoted(left_out));
  }
  return text;
}

}  // namespace dtrun::cli
