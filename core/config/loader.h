// Reads a config once, from defaults to --set. Created and used by Load; one thread.
//
// Core's options are read first, because they name the plugins; the plugins' options follow. In
// each pass the order is base, file, environment, --set, given, and a later value replaces an
// earlier one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/convert.h"
#include "core/config/problems.h"
#include "core/config/settings.h"
#include "core/hosts/host_slots.h"

namespace dtrun::config {

class Loader {
 public:
  Loader(const Request& request, const PluginSchema& plugin_schema);
  Loaded Run();

 private:
  // The options that a pass reads: those under `prefix`, or core's if it is empty.
  struct Pass {
    std::string prefix;  // "backend.options."
    std::string plugin;  // its name, for hints
    const Node* table = nullptr;
    const Node* own_table = nullptr;  // [backend.gloo]: the same options, under the plugin's name
    std::string shown = {};           // what the user typed in place of `prefix`: "backend.gloo."
    bool own_name_only = false;       // "backend.options." belongs to another backend
  };

  // backends.cc
  void CheckBackendName();
  void CheckCommunicator();
  std::string ChosenBackend() const;
  bool IsUnnamed(const std::string& name) const;
  std::string OfOneBackend(const Pass& pass, const std::string& key) const;
  bool MayBePassedOver(const std::string& name, const Error& why_not) const;
  bool KnowsBackend(const std::string& name) const;
  void CheckBackendTables();
  void FindBackendTables(Pass* pass);
  std::optional<std::string> BackendKey(const std::string& key) const;

  // launchers.cc
  std::string ChosenLauncher() const;
  bool KnowsLauncher(const std::string& name) const;
  void CheckLauncherTables();
  void FindLauncherTables(Pass* pass);
  std::optional<std::string> LauncherKey(const std::string& key) const;

  // loader.cc
  void ReadDocument();
  void RunPass(const Pass& pass);
  void AskPlugin(const std::string& kind);
  void WalkTable(const Pass& pass, const Node& table, const std::string& prefix);
  void TakeMember(const Pass& pass, const Member& member, const std::string& prefix);
  void TakeCommand();
  void NameJob();
  void Finish(std::size_t first_spec, std::size_t end);
  void AddDefaults(std::size_t first_spec);
  void Assign(const options::Spec& spec, const Node& node, const std::filesystem::path& folder,
              const Place& place);
  void Store(const options::Spec& spec, options::Data data, const Place& place);
  void Fail(const options::Spec& spec, const Place& place, const std::string& part,
            const std::string& message);
  void FailUnknown(const Pass& pass, const std::string& key, const Place& place, bool table, bool whole);
  bool Deferred(std::string_view key) const;
  Place InFile(Position at) const;

  // hosts.cc
  void TakeHosts();
  const options::Spec* HostSource();
  void TakeHostfile(const options::Spec& source, const std::string& path);
  void TakePlatform(const options::Spec& source);
  std::shared_ptr<hosts::Launchers> OtherLaunchers();
  void CheckConnect();
  void FailPlatform(const options::Spec& source, const Error& error);
  void LimitHosts();
  void CheckMinimum();
  void CheckIndex();
  void StandIn(const char* key, options::Data data, const Place& place);

  // gpus.cc
  std::optional<std::vector<hosts::HostSlots>> HostsToName(std::string_view text) const;
  std::string ListText() const;
  void SelectHosts();
  void CheckGpus();

  // ranks.cc
  void ShareRanks();
  void CheckSize();
  void ShareUnnamed(const options::Spec& spec, std::int64_t ranks, std::optional<std::int64_t> most);
  void FailTooManyRanks(const options::Spec& spec, std::int64_t ranks);

  // overrides.cc
  void ReadEnvironment(const Pass& pass);
  void ReadSets(const Pass& pass);
  void TakeSet(const Pass& pass, const std::string& text, int number);
  void TakeGiven(const Pass& pass, const std::vector<Given>& values);
  void TakeEntry(const options::Spec& map, const std::string& name, std::string_view text,
                 const Place& place);
  void AssignText(const options::Spec& spec, std::string_view text, const Place& place);

  const Request& request_;
  const PluginSchema& plugin_schema_;
  std::filesystem::path start_folder_;
  Settings settings_;
  Problems problems_;
  int unknown_ = 0;  // options and tables
  bool hosts_unknown_ = false;  // the platform is absent, so its hosts are unknown (Request::elsewhere)
  bool readable_ = true;        // the file, if one is given
  Node root_;
  std::vector<const Member*> backend_tables_;  // [backend.NAME], in root_
  std::vector<const Member*> launcher_tables_;
  std::map<std::string, Place> places_;  // of given values
  std::set<std::string> failed_;         // keys that already have a problem
};

}  // namespace dtrun::config
