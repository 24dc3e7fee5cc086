#include <fmt/format.h>

#include <algorithm>

#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/spec/read.h"
#include "tools/dtrun/torchrun/arguments.h"
#include "tools/dtrun/torchrun/grammar.h"

namespace dtrun::torchrun {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr char kPrefixTemplate[] = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";

Error At(const std::string& place, const Error& error) {
  return Bad(fmt::format("{}: {}", place, error.text));
}

bool IsNegativeNumber(std::string_view word) {
  word.remove_prefix(1);
  std::size_t digits = 0, points = 0;
  for (const char c : word) {
    if (c == '.') {
      ++points;
    } else if (IsDigit(c)) {
      ++digits;
    } else {
      return false;
    }
  }
  return digits > 0 && points <= 1 && !word.ends_with('.');
}

// argparse's rule to tell an option from a value.
bool LooksLikeOption(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !IsNegativeNumber(word) && word.find(' ') == word.npos;
}

class Parser {
 public:
  Parser(Program program, const std::vector<std::string>& words, const Environment& environment)
      : program_(program), words_(words), environment_(environment) {
    arguments_.use_env = program == Program::kTorchrun;
  }

  Result<Parsed> Run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") break;
      if (word.size() < 2 || word[0] != '-') {
        --at_;
        break;
      }
      const Status taken = word.starts_with("--") ? TakeLong(word) : TakeShort(word);
      if (!taken) return taken.error();
      if (help_) return Parsed{true, {}};
    }
    if (Status read = ReadEnvironment(); !read) return read.error();
    if (at_ == words_.size()) return Bad("the following arguments are required: training_script");
    arguments_.training_script = words_[at_++];
    arguments_.training_script_args.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    if (Status sound = Check(); !sound) return sound.error();
    return Parsed{false, std::move(arguments_)};
  }

 private:
  Status TakeLong(const std::string& word) {
    const std::size_t equals = word.find('=');
    const auto option = FindLong(word.substr(0, equals));
    if (!option) return option.error();
    if (equals == word.npos) return Take(**option, (*option)->Spelling(), nullptr);
    const std::string value = word.substr(equals + 1);
    return Take(**option, (*option)->Spelling(), &value);
  }

  // Flags may be combined, and a value may follow its letter: -m, -r3, -r=3, -mr3.
  Status TakeShort(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Option* option = FindShort(word[i]);
      if (option == nullptr) return Unknown(word);
      const std::string name = fmt::format("-{}", word[i]);
      if (option->flag()) {
        if (word.substr(i + 1, 1) == "=") {
          return Bad(fmt::format("argument {}: expected no value; found '{}'", name, word.substr(i + 2)));
        }
        if (Status taken = Take(*option, name, nullptr); !taken) return taken;
        continue;
      }
      if (i + 1 == word.size()) return Take(*option, name, nullptr);
      const std::string value = word.substr(word[i + 1] == '=' ? i + 2 : i + 1);
      return Take(*option, name, &value);
    }
    return {};
  }

  // `value`: the value in the same word, or null.
  Status Take(const Option& option, const std::string& name, const std::string* value) {
    const std::string key(option.name);
    const options::Origin origin{DTRUN_ORIGIN_COMMAND_LINE, option.Spelling()};
    if (option.flag()) {
      if (value != nullptr) {
        return Bad(fmt::format("argument {}: expected no value; found '{}'", name, *value));
      }
      if (!option.set) {
        help_ = true;
        return {};
      }
      arguments_.origins[key] = origin;
      return option.set("1", &arguments_);
    }
    if (value == nullptr) {
      if (at_ == words_.size() || LooksLikeOption(words_[at_])) {
        return Bad(fmt::format("argument {}: expected one argument", name));
      }
      value = &words_[at_++];
    }
    if (option.name == "start_method" && *value != "spawn" && *value != "fork" && *value != "forkserver")
      return Bad(fmt::format("argument {}: expected spawn, fork or forkserver; found '{}'", name, *value));
    const Status assigned = option.set(*value, &arguments_);
    if (!assigned) return At("argument " + name, assigned.error());
    arguments_.origins[key] = origin;
    return {};
  }

  Result<const Option*> FindLong(const std::string& word) const {
    std::string wanted = word.substr(2);
    std::ranges::replace(wanted, '-', '_');
    std::vector<const Option*> found;
    std::vector<std::string> spellings;
    for (const Option& option : Options(program_)) {
      if (option.name == wanted) return &option;
      if (!wanted.empty() && option.name.starts_with(wanted)) found.push_back(&option);
      spellings.push_back(option.Spelling());
    }
    if (found.size() == 1) return found[0];
    if (found.empty()) {
      if (word == "--set") return Bad(NoSet(at_ < words_.size() ? words_[at_] : ""));
      const auto nearest = Nearest(word, spellings);
      if (!nearest || IsCount(word)) return Unknown(word);
      return Bad(fmt::format("unrecognized arguments: {}; did you mean {}?", word, *nearest));
    }
    std::string names;
    for (const Option* option : found) names += (names.empty() ? "" : ", ") + option->Spelling();
    return Bad(fmt::format("ambiguous option: {} could match {}", word, names));
  }

  // The number-of-ranks flags of dtrun and mpirun.
  static bool IsCount(const std::string& word) {
    return word.starts_with("-n") || word == "--np" || word == "--ranks";
  }

  // The error for dtrun's way to set an option, which torchrun's command line lacks.
  static std::string NoSet(const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    const std::string key = assignment.substr(0, equals);
    const bool whole = equals != assignment.npos && key.find('.') != key.npos;
    return fmt::format(
        "unrecognized arguments: --set; torchrun has no --set: dtrun's options are variables there, {} "
        "dtrun torchrun ...",
        whole ? MaskText(spec::EnvironmentName(key) + assignment.substr(equals))
              : "DTRUN_CONFIG_BACKEND_NAME=gloo");
  }

  Error Unknown(const std::string& word) const {
    if (IsCount(word)) {
      return Bad(
          fmt::format("unrecognized arguments: {}; torchrun has --nproc-per-node; dtrun's -n is without "
                      "torchrun: dtrun -n 2 "
                      "train.py",
                      word));
    }
    if (word.starts_with("--torch-backend") || word.starts_with("--torch_backend")) {
      return Bad(
          fmt::format("unrecognized arguments: {}; torchrun has no such option; start it with the variable "
                      "DTRUN_CONFIG_BACKEND_TORCH=dtrun",
                      word));
    }
    if (word.starts_with("--print")) {
      return Bad(
          fmt::format("unrecognized arguments: {}; dtrun completion bash, zsh or fish prints it here", word));
    }
    return Bad(
        fmt::format("unrecognized arguments: {}; {} --help lists torchrun's; dtrun's own are set by "
                    "DTRUN_CONFIG_<KEY>, and the script's go after it",
                    word, ProgramName(program_)));
  }

  const Option* FindShort(char letter) const {
    for (const Option& option : Options(program_)) {
      if (option.letter == letter) return &option;
    }
    return nullptr;
  }

  // Takes defaults from PET_ variables for options not on the command line.
  Status ReadEnvironment() {
    for (const Option& option : Options(program_)) {
      const std::string variable = option.Environment();
      const auto found = environment_.find(variable);
      const std::string key(option.name);
      if (!option.environment || found == environment_.end() || arguments_.Given(key)) continue;
      const auto number = ParseInt(found->second);
      if (option.flag() && !number)
        return Bad(fmt::format("{}: expected an integer, 0 for off; found '{}'", variable, found->second));
      const Status set = option.set(option.flag() && *number == 0 ? "" : found->second, &arguments_);
      if (!set) return At(variable, set.error());
      arguments_.origins[key] = {DTRUN_ORIGIN_ENVIRONMENT, variable};
    }
    const auto prefix = environment_.find(kPrefixTemplate);
    if (prefix != environment_.end() && !arguments_.log_line_prefix_template && !prefix->second.empty()) {
      arguments_.log_line_prefix_template = prefix->second;
      arguments_.origins["log_line_prefix_template"] = {DTRUN_ORIGIN_ENVIRONMENT, kPrefixTemplate};
    }
    return {};
  }

  // Checks constraints between options.
  Status Check() const {
    if (arguments_.training_script.empty())
      return Bad("argument training_script: expected a script; found ''");
    if (arguments_.no_python && arguments_.module && !arguments_.run_path) {
      return Bad("argument --module: not together with --no-python; leave one of them out");
    }
    if (arguments_.no_python && !arguments_.use_env) {
      return Bad("argument --no-python: needs --use-env too; the program would get a --local-rank argument");
    }
    return {};
  }

  const Program program_;
  const std::vector<std::string>& words_;
  const Environment& environment_;
  std::size_t at_ = 0;
  bool help_ = false;
  Arguments arguments_;
};

}  // namespace

Result<Parsed> Parse(Program program, const std::vector<std::string>& words,
                     const std::map<std::string, std::string>& environment) {
  return Parser(program, words, environment).Run();
}

}  // namespace dtrun::torchrun
