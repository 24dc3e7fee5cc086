// Builds a JobSpec: values with their places, the problems found, and how a value gets in. Owned by the
// Loader, which fills it from each source in turn; JobHosts and ShareRanks complete it. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/spec/convert.h"
#include "core/spec/problems.h"
#include "core/spec/read.h"

namespace dtrun::spec {

struct Builder {
  explicit Builder(Request given);

  // Convert a value, check it and store it; a wrong one becomes a problem at `place`.
  void Assign(const options::Spec& row, const Node& node, const std::filesystem::path& folder,
              const Place& place);
  void AssignText(const options::Spec& row, std::string_view text, const Place& place);
  void TakeEntry(const options::Spec& map, const std::string& name, std::string_view text,
                 const Place& place);
  void Store(const options::Spec& row, options::Data data, const Place& place);
  void StoreOrFail(const options::Spec& row, Result<options::Data> data, const Place& place,
                   const std::string& part = {});

  const options::Spec* Find(std::string_view key) const;
  options::Value& ValueOf(const std::string& key);
  std::string ShownKey(const std::string& key) const;
  Place InFile(Position at) const;
  Place PlaceOf(const std::string& key) const;  // of a given value; the file if there is none

  void Fail(const options::Spec& row, const Place& place, const std::string& part,
            const std::string& message);
  void Fail(const AnyField& field, const std::string& message) {
    Fail(field.row(), PlaceOf(field.key()), "", message);
  }
  bool Failed(const AnyField& field) const { return failed.contains(field.key()); }

  std::shared_ptr<const Request> request;
  std::filesystem::path start_folder;
  JobSpec spec;
  PluginOptions plugin;    // of the pass that runs
  options::Schema schema;  // the rows that the config may use so far; those of the pass last
  std::string own_table;   // "backend.gloo.", when the pass is of a plugin that has no other
  Problems problems;
  std::map<std::string, Place> places;  // of given values
  std::set<std::string> failed;         // keys that already have a problem
};

// A legal job name derived from the stem of a config or script.
std::string JobNameOf(const std::filesystem::path& file);

}  // namespace dtrun::spec
