// Reads a config once, from defaults to --set. Created and used by Load; one thread.
//
// Core's options are read first, because they name the plugins; the plugins' options follow, each in a pass of its
// own. In each pass the order is base, file, environment, --set, given, and a later value replaces an earlier one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/convert.h"
#include "core/spec/problems.h"
#include "core/spec/read.h"

namespace dtrun::spec {

class Loader : public std::enable_shared_from_this<Loader> {
 public:
  explicit Loader(Request request);
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
  PluginOptions Read(const std::string& kind, const std::string& name, const options::Schema& schema, bool finish,
                     Problems* problems) const;
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
  void Assign(const options::Spec& row, const Node& node, const std::filesystem::path& folder, const Place& place);
  void Store(const options::Spec& row, options::Data data, const Place& place);
  void Fail(const options::Spec& row, const Place& place, const std::string& part, const std::string& message);
  void Fail(const AnyField& field, const std::string& message) {
    Fail(field.row(), PlaceOf(field.key()), "", message);
  }
  bool Failed(const AnyField& field) const { return failed_.contains(field.key()); }
  void FailUnknown(const Pass& pass, const std::string& key, const Place& place, bool table, bool whole);
  const options::Spec* Find(std::string_view key) const;
  options::Value& ValueOf(const std::string& key);
  bool Deferred(std::string_view key) const;
  Place InFile(Position at) const;
  Place PlaceOf(const std::string& key) const;  // of a given value; the file if there is none

  // hosts.cc
  void TakeHosts();
  const AnyField* HostSource();
  void TakeHostfile(const AnyField& source, const std::string& path);
  void TakePlatform();
  std::shared_ptr<hosts::Launchers> OtherLaunchers();
  void CheckConnect();
  void FailPlatform(const Error& error);
  void LimitHosts();
  void CheckMinimum();
  void CheckIndex();
  void CheckPorts();
  void StandIn(const AnyField& field, options::Data data, const Place& place);
  void ListHosts(std::vector<hosts::HostSlots> hosts, const Place& place);

  // gpus.cc
  std::vector<hosts::HostSlots> HostsToName(std::string_view text) const;
  std::string ListText() const;
  void SelectHosts();
  void CheckGpus();

  // ranks.cc
  void ShareRanks();
  void CheckSize();
  void ShareUnnamed(std::int64_t ranks, std::optional<std::int64_t> most);
  void FailTooManyRanks(std::int64_t ranks);

  // overrides.cc
  void ReadEnvironment(const Pass& pass);
  void ReadSets(const Pass& pass);
  void TakeSet(const Pass& pass, const std::string& text, int number);
  void TakeGiven(const Pass& pass, const std::vector<Given>& values);
  void TakeEntry(const options::Spec& map, const std::string& name, std::string_view text, const Place& place);
  void AssignText(const options::Spec& row, std::string_view text, const Place& place);

  std::shared_ptr<const Request> request_;
  std::filesystem::path start_folder_;
  JobSpec spec_;
  PluginOptions plugin_;    // of the pass that runs
  options::Schema schema_;  // the rows that the config may use so far; those of the pass last
  Problems problems_;
  int unknown_ = 0;             // options and tables
  bool hosts_unknown_ = false;  // the platform is absent, so its hosts are unknown (Request::elsewhere)
  bool readable_ = true;        // the file, if one is given
  std::shared_ptr<const Node> root_ = std::make_shared<const Node>();
  Tables tables_;                        // in root_
  std::map<std::string, Place> places_;  // of given values
  std::set<std::string> failed_;         // keys that already have a problem
};

}  // namespace dtrun::spec
