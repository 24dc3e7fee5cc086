// Environment dialects: the variables from which frameworks and launchers' own programs
// read who they are, written from one rank table.
//
// One small file per dialect; docs/environments.md has the table with the source of each
// contract and its traps. Pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/environments/rank_table.h"

namespace dtrun::environments {

using Variables = std::map<std::string, std::string>;

struct Contract {
  Variables set;
  // Only where neither the user, the launcher nor the inherited environment has a value.
  Variables fallback;
};

struct Dialect {
  const char* name;
  const char* summary;  // one line
  Contract (*write)(const RankTable& table, int rank);
  // A port that programs of this dialect have built in; null: none.
  int (*built_in_port)(int hosts);
};

const std::vector<Dialect>& Dialects();

// Unknown names: an error with the nearest one.
Result<const Dialect*> FindDialect(std::string_view name);

}  // namespace dtrun::environments
