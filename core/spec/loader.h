// Reads a config once, from defaults to --set. Created and used by Load; one thread.
//
// Core's options are read first, because they name the plugins; the plugins' options follow, each in a pass
// of its own. In each pass the order is base, file, environment, --set, given, and a later value replaces an
// earlier one.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/builder.h"

namespace dtrun::spec {

class Loader : public std::enable_shared_from_this<Loader> {
 public:
  explicit Loader(Builder builder) : builder_(std::move(builder)) {}
  Loaded Run(const PluginSchema& plugin_schema);
  PluginRead Read(const std::string& kind, const std::string& name, const options::Schema& schema) const;
  OptionsReader More();  // the same; keeps this loader

 private:
  // The options that a pass reads: those of a plugin, or core's if `kind` is empty.
  struct Pass {
    std::string kind = {};    // "backend"
    std::string plugin = {};  // its name
    std::string prefix = {};  // "backend.options."
    const Node* table = nullptr;
    const Node* own_table = nullptr;  // [backend.gloo]: the same options, under the plugin's name
    std::string shown = {};           // what the user typed in place of `prefix`: "backend.gloo."
    bool own_name_only = false;       // "backend.options." belongs to another backend
  };
  using Tables = std::vector<std::pair<std::string, const Member*>>;  // [backend.NAME], with "backend"

  // plugins.cc
  // A plugin of which the config gives the file alone has the name of that.
  template <class Name>
  void NameByFile(Name& name, const PathField& path, std::string_view kind);
  void NameLauncherByFile();
  void CheckBackendName();
  void CheckCommunicator();
  bool IsNamed(const std::string& kind, const std::string& name) const;
  std::string OfOneBackend(const Pass& pass, const std::string& key) const;
  bool MayBePassedOver(const std::string& name, const Error& why_not) const;
  bool Knows(const std::string& kind, const std::string& name) const;
  void CheckTables();
  void FindTables(Pass* pass);
  std::optional<std::pair<std::string, std::string>> PluginOf(const std::string& key) const;
  // `finish`: report options that are required and not set.
  PluginOptions Read(const std::string& kind, const std::string& name, const options::Schema& schema,
                     bool finish, Problems* problems) const;
  void Remember(const PluginOptions& options, bool below);
  std::vector<std::pair<std::string, std::string>> OwnersOf(std::string_view variable) const;
  void CheckPutOff();
  void ReadWrapped(const PluginSchema& schema_of, PluginOptions* wrapper, std::vector<std::string> above);
  void ReadPlugin(const PluginSchema& schema_of, const std::string& kind, const std::string& name);
  void CheckOthers(const PluginSchema& schema_of);

  // loader.cc
  void ReadDocument();
  void RunPass(const Pass& pass);
  void WalkTable(const Pass& pass, const Node& table, const std::string& prefix);
  void TakeMember(const Pass& pass, const Member& member, const std::string& prefix);
  void TakeCommand();
  void NameJob();
  void Finish(const options::Schema& rows);
  void FailUnknown(const Pass& pass, const std::string& key, const Place& place, bool table, bool whole);
  bool Deferred(std::string_view key) const;

  void ReadEnvironment(const Pass& pass);
  void FailVariable(const std::string& name, const options::Schema& rows);
  void TakeSet(const Pass& pass, const std::string& text, int number);
  void TakeGiven(const Pass& pass, const std::vector<Given>& values);

  Builder builder_;
  std::set<std::string> wrapped_;  // the backends that others stand on
  // Core's pass puts off what names none of its options and may name one of a plugin.
  std::vector<std::pair<std::string, Place>> put_off_sets_;
  std::vector<std::string> put_off_variables_;
  std::set<std::pair<std::string, std::string>> read_;  // the plugins of own_rows_, with their kind
  options::Schema own_rows_;                            // options of plugins, by OwnKey
  int unknown_ = 0;                                     // options and tables
  bool readable_ = true;                                // the file, if one is given
  std::shared_ptr<const Node> root_ = std::make_shared<const Node>();
  Tables tables_;  // in root_
};

}  // namespace dtrun::spec
