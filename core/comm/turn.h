// Which process of a rank is joined to the job. A rank may be several programs, one after another; they must
// not read each other's keys, nor be joined at once.
//
// Owned by the runtime; one thread.
#pragma once

#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/plugin/host.h"

namespace dtrun::comm {

class Turn {
 public:
  // Takes the turn of `rank` on `kv`. DTRUN_FAILED_PRECONDITION: another process of the rank has it, or this
  // one had it before it executed another program.
  static Result<Turn> Take(std::shared_ptr<dtrun_kv> kv, int rank);
  // How many turns were before.
  int number() const { return number_; }
  // Lets the next process of the rank join.
  void End();

 private:
  Turn(std::shared_ptr<dtrun_kv> kv, int rank, int number);
  std::string Text(const char* state) const;

  std::shared_ptr<dtrun_kv> kv_;
  std::string key_;
  int number_;
};

}  // namespace dtrun::comm
