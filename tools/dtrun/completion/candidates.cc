#include "tools/dtrun/completion/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dtrun::cli {
namespace {

using Words = std::vector<std::string>;

// Values that are only mentioned in the texts of these options.
struct KnownValues {
  std::string_view option, values;
};
constexpr KnownValues kValuesByOption[] = {
    {"--ranks", "gpu cpu auto"},
    {"--processes-per-host", "gpu cpu auto"},
    {"--local", "shm none shm,none"},
    {"--color", "auto always never"},
    {"--buffers", "private registered both"},
    {"--peers", "all none raw-gloo raw-mpi raw-ucx torch-gloo"},
};

std::vector<std::string_view> Items(std::string_view list) {
  std::vector<std::string_view> items;
  for (const std::string_view one : Split(list, ',')) {
    const std::size_t begin = one.find_first_not_of(' ');
    if (begin != std::string_view::npos) items.push_back(one.substr(begin));
  }
  return items;
}

// "{a,b}" in the type that CLI11 shows for CLI::IsMember, or "One of a, b" at the start of the help.
std::vector<std::string_view> DeclaredValues(std::string_view type, std::string_view help) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close) {
    return Items(type.substr(open + 1, close - open - 1));
  }
  constexpr std::string_view kOneOf = "One of ";
  return help.starts_with(kOneOf) ? Items(help.substr(kOneOf.size())) : std::vector<std::string_view>{};
}

CLI::App* VerbOf(const CLI::App& app, const std::string& name) {
  const auto found = const_cast<CLI::App&>(app).get_subcommands(
      [&](CLI::App* verb) { return verb->get_name() == name && !verb->get_group().empty(); });
  return found.empty() ? nullptr : found.front();
}

class Completer {
 public:
  Completer(const CompletionSources& sources, const Words& words)
      : sources_(sources), words_(words), at_(sources.root), current_(words.empty() ? "" : words.back()) {}

  Candidates Run() {
    for (std::size_t i = 0; i + 1 < words_.size() && state_ == State::kOwn; ++i) Read(words_[i]);
    if (state_ == State::kProgram) return {{}, Files::kAny};
    if (state_ == State::kTorchrun) {
      Take(sources_.torchrun);
      out_.files = current_.starts_with('-') ? Files::kNone : Files::kAny;
    } else if (value_of_ != nullptr) {
      ValuesOf(*value_of_, current_, "");
    } else if (const std::size_t equals = current_.find('=');
               current_.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* option = at_->get_option_no_throw(current_.substr(0, equals));
      if (option != nullptr) ValuesOf(*option, current_.substr(equals + 1), current_.substr(0, equals + 1));
    } else if (current_.starts_with('-')) {
      Flags();
    } else {
      NextWord();
    }
    return std::move(out_);
  }

 private:
  enum class State { kOwn, kProgram, kTorchrun };

  bool Runs() const { return at_ == sources_.root || std::ranges::count(sources_.runs, at_) > 0; }

  void Read(const std::string& word) {
    if (std::exchange(value_of_, nullptr) != nullptr) return;
    if (word == "--") {
      state_ = State::kProgram;
    } else if (word.size() > 1 && word[0] == '-') {
      if (word.find('=') != std::string::npos) return;
      const CLI::Option* option = at_->get_option_no_throw(word);
      if (option != nullptr && option->get_items_expected_max() > 0) value_of_ = option;
    } else if (at_ == sources_.root && word == "help") {
      help_ = true;
    } else if (const CLI::App* verb = VerbOf(*at_, word)) {
      at_ = verb;
      if (word == "torchrun" && !help_) state_ = State::kTorchrun;
    } else if (word.ends_with(".toml") && Runs()) {
      config_ = true;
    } else if (Runs()) {
      state_ = State::kProgram;
    } else {
      ++positionals_;
    }
  }

  void Offer(std::string word, std::string_view text) {
    if (word.starts_with(current_)) out_.words.push_back({std::move(word), std::string(text)});
  }
  void Take(const std::vector<Candidate>& candidates, const std::string& stem = "") {
    for (const Candidate& one : candidates) Offer(stem + one.word, one.text);
  }

  void Flags() {
    for (const CLI::Option* option : at_->get_options()) {
      if (option->get_positional() || option->get_group().empty()) continue;
      for (const std::string& name : option->get_snames()) Offer("-" + name, option->get_description());
      for (const std::string& name : option->get_lnames()) Offer("--" + name, option->get_description());
    }
  }

  // All of PATH is too much: require a prefix.
  void Program() {
    out_.files = config_ ? Files::kAny : Files::kRunnable;
    if (current_.empty() || current_.find('/') != std::string::npos) return;
    for (std::string& name : sources_.programs(current_)) Offer(std::move(name), "");
  }

  void NextWord() {
    for (const CLI::App* verb : at_->get_subcommands([](const CLI::App*) { return true; })) {
      if (!verb->get_group().empty() && !config_) Offer(verb->get_name(), verb->get_description());
    }
    if (help_) return;
    if (at_ == sources_.root && !config_) Offer("help", "Explain a verb");
    if (Runs()) Program();
    const auto positionals =
        at_->get_options([](const CLI::Option* option) { return option->get_positional(); });
    if (!positionals.empty()) {
      const CLI::Option* next = positionals[std::min(positionals_, positionals.size() - 1)];
      const bool more = positionals_ < positionals.size() || next->get_expected_max() > 1;
      if (more) ValuesOf(*next, current_, "");
    }
    if (out_.words.empty() && out_.files == Files::kNone) Flags();
  }

  // `value`: the part typed so far, after `stem`.
  void ValuesOf(const CLI::Option& option, std::string value, std::string stem) {
    const std::string name =
        option.get_lnames().empty() ? option.get_single_name() : "--" + option.get_lnames().back();
    if (name == "--set") return Setting(value, stem, option.get_type_name().starts_with("[BACKEND:]"));
    if (name == "KEY" || name == "PREFIX") return Keys(value, stem, false);
    if (name == "--config" || (name == "FILE" && option.get_positional())) {
      out_.files = Files::kToml;
      return;
    }
    if (const std::size_t comma = value.rfind(','); comma != value.npos) stem += value.substr(0, comma + 1);
    if (name == "NAME" && at_->get_name() == "describe") return Take(sources_.plugins(""), stem);
    if (name == "--backend") return Take(sources_.plugins("backend"), stem);
    if (name == "--template") return Take(sources_.templates, stem);
    if (name == "--as") return Take(sources_.dialects, stem);
    if (name == "WHAT") Offer("latest", "The newest run started in this folder");
    const std::string type = option.get_type_name();
    if (type.starts_with("FILE") || name == "WHAT") out_.files = Files::kAny;
    if (type.starts_with("DIR")) out_.files = Files::kFolders;
    for (const std::string_view one : DeclaredValues(type, option.get_description()))
      Offer(stem + std::string(one), "");
    for (const KnownValues& row : kValuesByOption) {
      if (row.option != name) continue;
      for (const std::string_view one : Split(row.values, ' ')) Offer(stem + std::string(one), "");
    }
  }

  // Core's options. A key with "backend.o" or "launcher.o" at its start can only be an option of plugins:
  // these options then.
  const options::Schema& OptionsLike(std::string_view key) {
    for (const char* kind : {"backend", "launcher"}) {
      if (key.starts_with(fmt::format("{}.o", kind))) return of_plugins_ = sources_.plugin_options(kind);
    }
    return sources_.options;
  }

  // `typed`: the typed part of the key, after `stem`. `setting`: also offers what follows a key.
  void Keys(std::string_view typed, const std::string& stem, bool setting) {
    for (const options::Spec& spec : OptionsLike(typed)) {
      const char* behind = !setting ? "" : spec.type == options::Type::kMap ? "." : "=";
      if (spec.replaced_by.empty()) Offer(stem + spec.key + behind, spec.doc);
    }
  }

  void Setting(std::string value, std::string stem, bool prefixed) {
    const std::size_t colon = value.find(':');
    if (prefixed && colon != value.npos && colon < value.find('=')) {
      stem += value.substr(0, colon + 1);
      value.erase(0, colon + 1);
    }
    const std::size_t equals = value.find('=');
    if (equals == value.npos) return Keys(value, stem, true);
    const std::string key = value.substr(0, equals);
    const options::Schema& known = OptionsLike(key);
    const auto spec = std::ranges::find(known, key, &options::Spec::key);
    if (spec == known.end()) return;
    stem += value.substr(0, equals + 1);
    if (const std::size_t comma = value.rfind(','); comma != value.npos)
      stem += value.substr(equals + 1, comma - equals);
    if (key == "backend.name") {
      Offer(stem + "auto", "The first that can be used here");
      Offer(stem + "none", "The program brings its own");
      return Take(sources_.plugins("backend"), stem);
    }
    if (key == "launcher.name") return Take(sources_.plugins("launcher"), stem);
    if (key == "job.dialects") return Take(sources_.dialects, stem);
    for (const std::string& choice : spec->choices) Offer(stem + choice, "");
    if (key.ends_with(".dir")) out_.files = Files::kFolders;  // a string, because it may contain placeholders
    switch (spec->type) {
      case options::Type::kBool: Offer(stem + "true", ""), Offer(stem + "false", ""); break;
      case options::Type::kPath:
      case options::Type::kPathList: out_.files = Files::kAny; break;
      case options::Type::kList:  // its default lists all values, or is empty
        for (const std::string_view one : spec->default_text ? Items(*spec->default_text) : Items(""))
          Offer(stem + std::string(one), "");
        break;
      default: break;
    }
  }

  const CompletionSources& sources_;
  const Words& words_;
  const CLI::App* at_;
  const std::string current_;
  State state_ = State::kOwn;
  const CLI::Option* value_of_ = nullptr;  // the next word is a value of this option
  bool help_ = false;
  bool config_ = false;
  std::size_t positionals_ = 0;
  options::Schema of_plugins_;
  Candidates out_;
};

}  // namespace

Candidates Complete(const CompletionSources& sources, const std::vector<std::string>& words) {
  return Completer(sources, words).Run();
}

std::string RenderCandidates(const Candidates& candidates) {
  constexpr std::string_view kFiles[] = {"none", "any", "toml", "folders", "runnable"};
  std::string out = fmt::format("{}\n", kFiles[static_cast<int>(candidates.files)]);
  for (const Candidate& one : candidates.words) {
    out += one.text.empty() ? one.word + '\n' : fmt::format("{}\t{}\n", one.word, one.text);
  }
  return out;
}

}  // namespace dtrun::cli
