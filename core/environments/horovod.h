// The scopes of Horovod's rendezvous store and how many ranks meet in each: all of them, those of a
// host, and those with one local rank. Pure; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/environments/rank_table.h"

namespace dtrun::environments {

std::map<std::string, std::size_t> HorovodScopes(const RankTable& table);

}  // namespace dtrun::environments
