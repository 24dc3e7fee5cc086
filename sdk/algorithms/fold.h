// Folds a world of any size onto the largest power of two that fits in it.
//
// Among the first 2 * extra ranks, each even one sends its vector to the next odd one and waits for
// the result. The others ("players") continue with new numbers in the same order. R. Thakur, R.
// Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA
// 19(1), 2005, section 4.5. Pure; any thread.
#pragma once

#include <bit>

namespace dtrun::algorithms {

struct Fold {
  Fold(int rank, int size)
      : players(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), extra(size - players) {
    if (rank >= 2 * extra) {
      number = rank - extra;
    } else {
      number = rank % 2 == 0 ? -1 : rank / 2;
    }
  }
  bool gives() const { return number < 0; }                     // sends its vector to rank + 1
  bool takes() const { return number >= 0 && number < extra; }  // receives that of rank - 1
  int RankOf(int player) const { return player < extra ? 2 * player + 1 : player + extra; }

  int players;
  int extra;
  int number;  // among the players; -1: not a player
};

}  // namespace dtrun::algorithms
