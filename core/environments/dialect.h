// Environment dialects: the variables that tell frameworks and other launchers' programs their rank, written
// from one rank table.
//
// docs/environments.md lists them with the source and the pitfalls of each contract.
// Pure functions; any thread.
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
  // Used only if neither the user, the launcher nor the inherited environment sets a value.
  Variables fallback;
};

struct Dialect {
  const char* name;
  const char* summary;  // one line
  Contract (*write)(const RankTable& table, int rank);
  // The built-in port of this dialect's programs; null: none.
  int (*built_in_port)(int hosts);
};

const std::vector<Dialect>& Dialects();

// The error for an unknown name suggests the nearest one.
Result<const Dialect*> FindDialect(std::string_view name);

// The scopes of Horovod's rendezvous store and their sizes: all ranks, the ranks of a host, and the ranks
// with the same local rank.
std::map<std::string, std::size_t> HorovodScopes(const RankTable& table);

}  // namespace dtrun::environments
