// The scopes of Horovod's rendezvous store and their sizes: all ranks, the ranks of a host, and the ranks
// with the same local rank. Pure; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/environments/rank_table.h"

namespace dtrun::environments {

std::map<std::string, std::size_t> HorovodScopes(const RankTable& table);

}  // namespace dtrun::environments
