#include "tools/dtrun/completion/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Typed = std::vector<std::string>;

// A small dtrun: the job's flags at the root and at `plan`, `config check FILE`, `config explain KEY`,
// `plugins describe NAME --kind`, `bench OPERATION`, and an internal verb.
class CandidatesTest : public ::testing::Test {
 protected:
  CandidatesTest() {
    plan_ = app_.add_subcommand("plan", "Print it");
    for (CLI::App* app : {&app_, plan_}) {
      app->add_option("-c,--config", text_)->type_name("FILE");
      app->add_option("-n,--np,--ranks", text_, "Ranks")->type_name("N");
      app->add_option("--hostfile", text_)->type_name("FILE");
      app->add_option("--plugin-dir", text_)->type_name("DIR");
      app->add_option("--set", texts_)->type_name("KEY=VALUE");
    }
    app_.add_flag("-q,--quiet", flag_);
    app_.add_option("--color", text_, "When to color");
    CLI::App* config = app_.add_subcommand("config", "");
    config->add_subcommand("check", "")->add_option("FILE", text_)->type_name("");
    config->add_subcommand("init", "")->add_option("--template", text_);
    config->add_subcommand("explain", "")->add_option("KEY", text_)->type_name("");
    CLI::App* describe = app_.add_subcommand("plugins", "")->add_subcommand("describe", "");
    describe->add_option("NAME", text_);
    describe->add_option("--kind", text_)->check(CLI::IsMember({"backend", "launcher"}));
    CLI::App* bench = app_.add_subcommand("bench", "");
    bench->add_option("OPERATION", text_, "One of allreduce, barrier");
    bench->add_option("--backend", text_);
    bench->add_option("--set", texts_)->type_name("[BACKEND:]KEY=VALUE");
    app_.add_subcommand("torchrun", "");
    app_.add_subcommand("agent", "")->group("");

    const auto option = [](const char* key, options::Type type) {
      options::Spec spec;
      spec.key = key;
      spec.type = type;
      return spec;
    };
    options::Spec choice = option("job.bind", options::Type::kEnum);
    choice.choices = {"none", "core"};
    options::Spec list = option("restart.on", options::Type::kList);
    list.default_text = "signal,hang";
    const options::Schema schema{option("plugins.strict", options::Type::kBool),
                                 choice,
                                 list,
                                 option("backend.name", options::Type::kNames),
                                 option("job.cwd", options::Type::kPath),
                                 option("logs.dir", options::Type::kString),
                                 option("job.env", options::Type::kMap)};
    sources_ = {&app_, {plan_}, schema, {{"horovod", ""}}, {{"--nnodes", "nodes"}}, {}, {}, {}, {}};
    sources_.templates = {{"basic", ""}, {"gpu", ""}};
    sources_.programs = [](std::string_view prefix) {
      Typed names;
      for (const char* name : {"plot", "python3"}) {
        if (std::string_view(name).starts_with(prefix)) names.emplace_back(name);
      }
      return names;
    };
    sources_.plugins = [](std::string_view kind) -> std::vector<Candidate> {
      if (kind == "backend") return {{"gloo", ""}, {"ucx", ""}};
      return {{"gloo", ""}, {"ucx", ""}, {"slurm", ""}};
    };
    sources_.plugin_options = [option](std::string_view kind) -> options::Schema {
      if (kind == "launcher") return {};
      return {option("backend.options.interface", options::Type::kString),
              option("backend.options.lanes", options::Type::kBool)};
    };
  }

  Typed Words(const Typed& typed) const {
    Typed words;
    for (const Candidate& one : Complete(sources_, typed).words) words.push_back(one.word);
    return words;
  }
  Files FilesFor(const Typed& typed) const { return Complete(sources_, typed).files; }

  CLI::App app_{"", "dtrun"};
  CLI::App* plan_;
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
  CompletionSources sources_;
};

TEST_F(CandidatesTest, TheFirstWordIsAVerbOrAConfig) {
  EXPECT_THAT(Words({""}),
              AllOf(Contains("plan"), Contains("help"), Not(Contains("agent")), Not(Contains("--set"))));
  EXPECT_THAT(Words({"pl"}), ElementsAre("plan", "plugins", "plot"));
  EXPECT_THAT(Words({"help", "c"}), ElementsAre("config"));
  EXPECT_THAT(Words({"help", "config", ""}), ElementsAre("check", "init", "explain"));
}

TEST_F(CandidatesTest, TheFirstWordIsAProgramOrAFile) {
  for (const Typed& typed : {Typed{"py"}, Typed{"-n", "2", "py"}, Typed{"plan", "py"}}) {
    EXPECT_THAT(Words(typed), ElementsAre("python3"));
    EXPECT_EQ(FilesFor(typed), Files::kRunnable);
  }
  EXPECT_THAT(Words({"plan", ""}), IsEmpty()) << "all of PATH";
  EXPECT_THAT(Words({"./py"}), IsEmpty());
  EXPECT_EQ(FilesFor({"./py"}), Files::kRunnable);
}

TEST_F(CandidatesTest, FlagsAreThoseOfTheVerb) {
  EXPECT_THAT(Words({"--"}),
              AllOf(Contains("--ranks"), Contains("--quiet"), Contains("--help"), Not(Contains("-n"))));
  EXPECT_THAT(Words({"-"}), Contains("-n"));
  EXPECT_THAT(Words({"plan", "--q"}), IsEmpty());
  EXPECT_THAT(Words({"bench", "allreduce", ""}), Contains("--backend"));
}

TEST_F(CandidatesTest, FlagsHaveTheirValues) {
  EXPECT_THAT(Words({"-n", ""}), ElementsAre("gpu", "cpu", "auto"));
  EXPECT_THAT(Words({"plugins", "describe", "--kind", "b"}), ElementsAre("backend"));
  EXPECT_THAT(Words({"plugins", "describe", "--kind=l"}), ElementsAre("--kind=launcher"));
  EXPECT_THAT(Words({"bench", "--backend", "gloo,"}), ElementsAre("gloo,gloo", "gloo,ucx"));
  EXPECT_THAT(Words({"--color", "a"}), ElementsAre("auto", "always"));
  EXPECT_THAT(Words({"config", "init", "--template", "g"}), ElementsAre("gpu"));
  EXPECT_EQ(FilesFor({"--config", ""}), Files::kToml);
  EXPECT_EQ(FilesFor({"--hostfile", ""}), Files::kAny);
  EXPECT_EQ(FilesFor({"--plugin-dir", ""}), Files::kFolders);
}

TEST_F(CandidatesTest, PositionalsHaveTheirs) {
  EXPECT_THAT(Words({"bench", ""}), ElementsAre("allreduce", "barrier"));
  EXPECT_THAT(Words({"plugins", "describe", "s"}), ElementsAre("slurm"));
  EXPECT_THAT(Words({"config", "explain", "job."}), ElementsAre("job.bind", "job.cwd", "job.env"));
  EXPECT_EQ(FilesFor({"config", "check", ""}), Files::kToml);
}

TEST_F(CandidatesTest, SettingsHaveKeysAndValues) {
  EXPECT_THAT(Words({"--set", "job."}), ElementsAre("job.bind=", "job.cwd=", "job.env."));
  EXPECT_THAT(Words({"--set", "job.bind="}), ElementsAre("job.bind=none", "job.bind=core"));
  EXPECT_THAT(Words({"--set=job.bind=c"}), ElementsAre("--set=job.bind=core"));
  EXPECT_THAT(Words({"--set", "plugins.strict=t"}), ElementsAre("plugins.strict=true"));
  EXPECT_THAT(Words({"--set", "backend.name=g"}), ElementsAre("backend.name=gloo"));
  EXPECT_THAT(Words({"--set", "backend.name="}),
              ElementsAre("backend.name=auto", "backend.name=none", "backend.name=gloo", "backend.name=ucx"));
  EXPECT_THAT(Words({"--set", "restart.on=signal,"}),
              ElementsAre("restart.on=signal,signal", "restart.on=signal,hang"));
  EXPECT_THAT(Words({"--set", "no.such=x"}), IsEmpty());
  EXPECT_EQ(FilesFor({"--set", "job.cwd="}), Files::kAny);
  EXPECT_EQ(FilesFor({"--set", "logs.dir="}), Files::kFolders);
  EXPECT_THAT(Words({"bench", "--set", "gloo:plugins.strict=f"}), ElementsAre("gloo:plugins.strict=false"));
}

TEST_F(CandidatesTest, SettingsOfPluginsAreThePluginsOwn) {
  EXPECT_THAT(Words({"--set", "backend.o"}),
              ElementsAre("backend.options.interface=", "backend.options.lanes="));
  EXPECT_THAT(Words({"--set", "backend.options.lanes="}),
              ElementsAre("backend.options.lanes=true", "backend.options.lanes=false"));
  EXPECT_THAT(Words({"config", "explain", "backend.options.i"}), ElementsAre("backend.options.interface"));
  EXPECT_THAT(Words({"--set", "launcher.o"}), IsEmpty());
}

TEST_F(CandidatesTest, TheProgramsWordsAreFiles) {
  for (const Typed& typed : {Typed{"train.py", "--"}, Typed{"--", ""}, Typed{"plan", "-n", "2", "echo", "pl"},
                             Typed{"-q", "job.toml", "echo", ""}}) {
    EXPECT_THAT(Words(typed), IsEmpty());
    EXPECT_EQ(FilesFor(typed), Files::kAny);
  }
  EXPECT_THAT(Words({"job.toml", "-q"}), ElementsAre("-q"));
}

TEST_F(CandidatesTest, TorchrunHasItsOwn) {
  EXPECT_THAT(Words({"torchrun", "--n"}), ElementsAre("--nnodes"));
  EXPECT_EQ(FilesFor({"torchrun", ""}), Files::kAny);
}

TEST_F(CandidatesTest, Lines) {
  EXPECT_EQ(RenderCandidates({{{"a", "first"}, {"b", ""}}, Files::kToml}), "toml\na\tfirst\nb\n");
}

}  // namespace
}  // namespace dtrun::cli
