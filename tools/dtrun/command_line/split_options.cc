#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.h"
#include "tools/dtrun/command_line/splitter.h"

namespace dtrun::cli {
namespace {

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The placeholder for its value in a message: KEY=VALUE itself would be masked as a secret.
std::string FormOf(const CLI::Option& option) {
  return option.check_name("--set") ? "job.grace=5s" : option.get_type_name();
}

// An unknown option of another launcher's command line.
std::string UnknownOf(const OtherLauncher& launcher, const std::string& name) {
  return fmt::format(
      "dtrun knows no flag '{}' of {}; leave it out, or write what it does as an option of dtrun "
      "(dtrun config list)",
      name, launcher.name);
}

}  // namespace

Result<bool> Splitter::TakeOption(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const bool is_long = name.starts_with("--");
  if (is_long || name.size() > 2) {
    const CLI::Option* own = at_->get_option_no_throw(name);
    const ForeignFlag* found = Foreign(name);
    if (own != nullptr && !IsOwners(found)) return TakeOwn(*own, name, word, equals);
    if (found != nullptr) return TakeForeign(*found, name, word, equals);
    if (equals == word.npos && TakeForRoot(name)) return true;
    if (is_long && Owner() != nullptr) return Wrong(UnknownOf(*Owner(), name));
    if (is_long) return Wrong(UnknownLong(name, equals == word.npos ? "" : word.substr(equals + 1)));
    const std::size_t digit = std::min(name.find_first_of("0123456789"), name.size());
    const ForeignFlag* foreign = digit > 2 ? Foreign(name.substr(0, digit)) : nullptr;  // -np2
    if (foreign != nullptr && equals == std::string::npos) {
      return TakeForeign(*foreign, name.substr(0, digit), word, digit - 1);
    }
  }
  // "-n4", "-qv", "-c=x": short options; one with a value ends the word.
  for (std::size_t i = 1; i < word.size(); ++i) {
    const std::string one = {'-', word[i]};
    const CLI::Option* own = at_->get_option_no_throw(one);
    const ForeignFlag* foreign = Foreign(one);
    if (own == nullptr || (i == 1 && IsOwners(foreign))) {
      if (foreign != nullptr && i == 1) {
        return TakeForeign(*foreign, one, word,
                           word.size() == 2 ? std::string::npos
                           : word[2] == '=' ? 2
                                            : 1);
      }
      if (TakeForRoot(one)) continue;
      const std::string& unknown = word.size() > 2 ? word : one;
      return Wrong(Owner() == nullptr ? Unknown(unknown) : UnknownOf(*Owner(), unknown));
    }
    if (TakesValue(*own)) {
      std::string value = word.substr(i + 1);
      if (value.starts_with('=')) value.erase(0, 1);
      if (i + 1 < word.size()) return Add(*own, one, std::move(value));
      return TakeOwn(*own, one, one, std::string::npos);
    }
    out_.words.push_back(one);
  }
  return true;
}

bool Splitter::TakeForRoot(const std::string& name) {
  const CLI::Option* flag = grammar_.root->get_option_no_throw(name);
  if (Owner() == nullptr || flag == nullptr || TakesValue(*flag)) return false;
  if (std::ranges::count(out_.words, name) == 0) out_.words.insert(out_.words.begin(), name);
  return true;
}

Result<std::string> Splitter::NextValue(const std::string& name, const std::string& form) {
  if (next_ == words_.size()) return Wrong(fmt::format("{} needs a value{}", name, form));
  const std::string& value = words_[next_];
  if (value.size() > 1 && value[0] == '-' && !IsDigit(value[1])) {
    return Wrong(fmt::format("{0} needs a value, and '{1}' looks like an option; if it is the value: {2}",
                             name, value, Quoted({name + "=" + value})));
  }
  ++next_;
  return value;
}

Result<bool> Splitter::TakeOwn(const CLI::Option& option, const std::string& name, const std::string& word,
                               std::size_t equals) {
  if (!TakesValue(option)) {
    if (equals != std::string::npos)
      return Wrong(fmt::format("{} takes no value; write {} alone", name, name));
    out_.words.push_back(word);
    return true;
  }
  if (equals != std::string::npos) return Add(option, name, word.substr(equals + 1));
  const Result<std::string> value = NextValue(name, fmt::format(": {} {}", name, FormOf(option)));
  if (!value) return value.error();
  if (next_ == words_.size() && (value->ends_with(".py") || grammar_.known(*value)))
    out_.swallowed = fmt::format("'{}' was taken as the value of {}", *value, name);
  return Add(option, name, *value);
}

Result<bool> Splitter::Add(const CLI::Option& option, const std::string& name, std::string value) {
  const bool once = option.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
  if (const auto [first, fresh] = seen_.try_emplace(&option, name); once && !fresh) {
    if (launcher_ == nullptr) {  // in another launcher's command line the last one counts
      return Wrong(first->second == name ? fmt::format("{} is given twice; leave one of them out", name)
                                         : fmt::format("{} and {} are the same option; leave one of them out",
                                                       first->second, name));
    }
    const auto earlier =
        std::ranges::find_if(out_.words, [&](const std::string& word) { return option.check_name(word); });
    out_.words.erase(earlier, earlier + 2);
  }
  if (value.empty() && !option.check_name("--ranks"))
    return Wrong(fmt::format("{} is empty; write {} {}", name, name, FormOf(option)));
  if (option.check_name("--config")) {
    if (const auto other = NotAConfig(name, value, grammar_.known("./" + value))) return Wrong(*other);
  }
  if (const std::string own = option.get_lnames().empty() ? name : "--" + option.get_lnames().back();
      own != name)
    out_.spelled[own + " " + value] = name;
  if (option.check_name("--config")) config_ = value;
  if (option.check_name("--hosts") && !IsDigits(value) && grammar_.file && grammar_.file(value)) {
    out_.warned.push_back(fmt::format(
        "{0} {1} names a host, and '{1}' is a file here; for a hostfile: --hostfile {1}", name, value));
  }
  if (option.check_name("--set") && value.find('=') == std::string::npos && next_ < words_.size() &&
      !words_[next_].starts_with('-') && value.find('.') != std::string::npos) {
    const std::string& next = words_[next_];
    const bool other = next.ends_with(".py") || next.ends_with(".toml") || grammar_.known(next);
    return Wrong(fmt::format("{} takes a key and its value in one word; write {} {}={}", name, name, value,
                             other ? "VALUE" : next));
  }
  if (name == "-N" && value.find_first_not_of("0123456789:-,") == std::string::npos) {
    std::string count = HostCount(value);  // a range would be taken for a host name
    if (count.empty()) {
      return Wrong(fmt::format("-N {}: expected a number of hosts; {}", value,
                               AdviceOf(*FindForeignFlag("--nnodes"), value)));
    }
    value = std::move(count);
  }
  const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
  if (option.check_name("--ranks") && TakesJobs() &&
      (value.empty() || (!digits && value != "gpu" && value != "cpu" && value != "auto"))) {
    return Wrong(
        fmt::format("{} '{}': expected a number of ranks, or gpu, cpu or auto for one for each GPU or core",
                    name, value));
  }
  out_.words.insert(out_.words.end(), {name, std::move(value)});
  return true;
}

Result<bool> Splitter::TakeForeign(const ForeignFlag& flag, const std::string& name, const std::string& word,
                                   std::size_t equals) {
  const std::string option(flag.words.substr(0, flag.words.find(' ')));
  if (flag.reading == Reading::kWords && option.starts_with("--") && option != "--set") {
    const CLI::Option* own = at_->get_option_no_throw(option);
    if (own == nullptr) return Wrong(Unknown(name));
    out_.assumed.push_back(fmt::format("{} is read as {}", name, option));
    Result<bool> taken = TakeOwn(*own, name, word, equals);
    if (taken) out_.words.end()[-2] = option;
    return taken;
  }
  if (!TakesJobs()) return Wrong(Unknown(name));  // no such verb in other launchers
  if (flag.reading == Reading::kModule) return TakeModule(flag, name, word, equals);
  const bool refused = flag.reading >= Reading::kRefused;
  const auto takes = static_cast<std::size_t>(ValuesOf(flag, name));
  Words values;
  if (equals != word.npos) values.push_back(word.substr(equals + 1));
  if (values.size() > takes && !refused && flag.reading != Reading::kHarmless)
    return Wrong(fmt::format("{} takes no value; write {} alone", name, name));
  while (values.size() < takes) {
    if (takes == 2 && next_ < words_.size()) {  // checked together
      values.push_back(words_[next_++]);
      continue;
    }
    Result<std::string> value = NextValue(name, "");
    if (!value && !refused) return value.error();
    if (!value) break;
    values.push_back(*std::move(value));
  }
  Result<ForeignWords> read = ReadForeign(flag, name, values);
  if (!read) return read.error();
  if (read->effect == ForeignWords::Effect::kRefused) {
    Refuse(flag, name, values, *std::move(read));
    return true;
  }
  out_.words.insert(out_.words.end(), read->words.begin(), read->words.end());
  const std::string spelled = option == "-N" ? "--hosts " : "--set ";
  if (!read->words.empty()) out_.spelled[spelled + read->words.back()] = name;
  (read->effect == ForeignWords::Effect::kNone ? out_.warned : out_.assumed).push_back(std::move(read->text));
  return true;
}

void Splitter::Refuse(const ForeignFlag& flag, const std::string& name, const Words& values,
                      ForeignWords near) {
  const bool programs = flag.reading == Reading::kUnread && Owner() == nullptr;
  refused_.push_back(fmt::format("{}; {}{}", FlagOf(flag, name), near.text,
                                 programs ? "; an option of the program goes after it" : ""));
  if (!near.words.empty()) near_.push_back(std::move(near.words));
  each_host_ = each_host_ || flag.reading == Reading::kEachHost;
  if (flag.reading != Reading::kMpirun) return;
  for_mpirun_.push_back(name);
  for_mpirun_.insert(for_mpirun_.end(), values.begin(), values.end());
}

Result<bool> Splitter::TakeModule(const ForeignFlag& flag, const std::string& name, const std::string& word,
                                  std::size_t equals) {
  if (Owner() != nullptr && equals == word.npos) {
    module_ = true;
    return true;
  }
  out_.command = {"python3", "-m"};
  if (equals != word.npos) out_.command.push_back(word.substr(equals + 1));
  std::ranges::copy(After(), std::back_inserter(out_.command));
  if (const auto launcher = LauncherOf(out_.command)) return Wrong(InPlaceOf(*launcher));
  if (out_.command.size() == 2) out_.command.emplace_back("MODULE");
  refused_.push_back(FlagOf(flag, name) + "; write the interpreter");
  return false;
}

}  // namespace dtrun::cli
