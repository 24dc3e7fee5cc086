// The verbs below `dtrun plugins`.
#include "tools/dtrun/plugins.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {

void AddPlugins(CLI::App& app, ConfigArguments* job, Verbs* to) {
  struct Arguments {
    std::string name, kind;          // for describe
    std::vector<std::string> files;  // for check
    bool json = false;
    bool names_only = false;
    NewPluginArguments create;
  };
  const auto own = std::make_shared<Arguments>();
  CLI::App* plugins =
      app.add_subcommand("plugins", "List, describe, check and verify plugins, or start a new one");
  plugins->require_subcommand(0, 1);
  CLI::App* list = plugins->add_subcommand("list", "Every plugin found, and whether it loads");
  list->add_flag("--json", own->json, "Machine-readable");
  list->add_flag("--names", own->names_only, "Names only; loads nothing");
  AddOverrides(list, job);
  CLI::App* describe =
      plugins->add_subcommand("describe", "What a plugin is, what it would use here, its options");
  describe->add_option("NAME", own->name, "A name such as gloo, or the absolute path of a plugin file")
      ->type_name("")
      ->required();
  describe->add_option("--kind", own->kind, "Where plugins of several kinds share the name")
      ->type_name("KIND")
      ->check(CLI::IsMember({"backend", "launcher", "device"}));
  describe->add_flag("--json", own->json, "Machine-readable");
  AddOverrides(describe, job);
  to->push_back({describe, [job, own] { return DescribePlugin(*job, own->name, own->kind, own->json); }});
  CLI::App* check = plugins->add_subcommand("check", "What dtrun says of plugin files; starts no job");
  check->add_option("PLUGIN", own->files, "Files, such as build/libdtrun_backend_NAME.so")
      ->type_name("FILE")
      ->required();
  check->add_flag("--json", own->json, "Machine-readable");
  check->footer("Exit code: 0 if every file loads and breaks no rule that its file shows, 1 if not.");
  to->push_back({check, [job, own] { return CheckPlugins(*job, own->files, own->json); }});
  CLI::App* verify =
      plugins->add_subcommand("verify", "Try a plugin against every rule of the ABI, by dtrun-conformance");
  verify->add_option("PLUGIN", own->files, "The file; arguments of dtrun-conformance follow it")
      ->type_name("FILE")
      ->required()
      ->expected(1);
  verify->footer("dtrun plugins verify FILE --help lists the arguments. The program comes with the SDK.");
  CLI::App* create =
      plugins->add_subcommand("new", "Write a plugin that builds and passes verify, to start from");
  create->add_option("NAME", own->create.name, "Up to 32 of a-z, 0-9, - and _")->type_name("")->required();
  create->add_option("--language", own->create.language, "One of c, c++, rust")
      ->type_name("LANGUAGE")
      ->capture_default_str();
  create->add_flag("--launcher", own->create.launcher, "A launcher; else a backend");
  create->add_option("--output", own->create.output, "The folder to make (default: NAME)")->type_name("DIR");
  to->push_back({create, [own] { return NewPlugin(own->create); }});
  // Last: it was typed also where one of the others was.
  to->push_back({plugins, [job, own] { return ListPlugins(*job, own->json, own->names_only); }});
}

}  // namespace dtrun::cli
