// The verbs below `dtrun plugins`.
#include "tools/dtrun/plugins.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {

PluginsVerb AddPlugins(CLI::App& app, ConfigArguments* to) {
  PluginsVerb verb;
  PluginsVerb::Arguments& own = *verb.own;
  CLI::App* plugins =
      app.add_subcommand("plugins", "List, describe, check and verify plugins, or start a new one");
  plugins->require_subcommand(0, 1);
  verb.plugins = plugins;
  CLI::App* list = plugins->add_subcommand("list", "Every plugin found, and whether it loads");
  list->add_flag("--json", own.json, "Machine-readable");
  list->add_flag("--names", own.names_only, "Names only; loads nothing");
  AddOverrides(list, to);
  CLI::App* describe =
      plugins->add_subcommand("describe", "What a plugin is, what it would use here, its options");
  describe->add_option("NAME", own.name, "A name such as gloo, or the absolute path of a plugin file")
      ->type_name("")
      ->required();
  describe->add_option("--kind", own.kind, "Where plugins of several kinds share the name")
      ->type_name("KIND")
      ->check(CLI::IsMember({"backend", "launcher", "device"}));
  describe->add_flag("--json", own.json, "Machine-readable");
  AddOverrides(describe, to);
  verb.describe = describe;
  CLI::App* check = plugins->add_subcommand("check", "What dtrun says of plugin files; starts no job");
  check->add_option("PLUGIN", own.files, "Files, such as build/libdtrun_backend_NAME.so")
      ->type_name("FILE")
      ->required();
  check->add_flag("--json", own.json, "Machine-readable");
  check->footer("Exit code: 0 if every file loads and breaks no rule that its file shows, 1 if not.");
  verb.check = check;
  CLI::App* verify =
      plugins->add_subcommand("verify", "Try a plugin against every rule of the ABI, by dtrun-conformance");
  verify->add_option("PLUGIN", own.files, "The file; arguments of dtrun-conformance follow it")
      ->type_name("FILE")
      ->required()
      ->expected(1);
  verify->footer("dtrun plugins verify FILE --help lists the arguments. The program comes with the SDK.");
  CLI::App* create =
      plugins->add_subcommand("new", "Write a plugin that builds and passes verify, to start from");
  create->add_option("NAME", own.create.name, "Up to 32 of a-z, 0-9, - and _")->type_name("")->required();
  create->add_option("--language", own.create.language, "One of c, c++, rust")
      ->type_name("LANGUAGE")
      ->capture_default_str();
  create->add_flag("--launcher", own.create.launcher, "A launcher; else a backend");
  create->add_option("--output", own.create.output, "The folder to make (default: NAME)")->type_name("DIR");
  verb.create = create;
  return verb;
}

std::optional<int> PluginsVerb::Run(const ConfigArguments& arguments) const {
  if (describe->parsed()) return DescribePlugin(arguments, own->name, own->kind, own->json);
  if (check->parsed()) return CheckPlugins(arguments, own->files, own->json);
  if (create->parsed()) return NewPlugin(own->create);
  if (plugins->parsed()) return ListPlugins(arguments, own->json, own->names_only);
  return std::nullopt;
}

}  // namespace dtrun::cli
