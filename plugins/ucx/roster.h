// The ranks of a communicator as the key-value space knows them: who has come, where they
// are, who has left, and why the communicator failed if it did.
//
// Owned by a communicator. Blocks for as long as the store takes. Any thread.
#pragma once

#include <optional>
#include <string>

#include "cause.h"

namespace dtrun::ucx_plugin {

class Roster {
 public:
  explicit Roster(const sdk::CommParams& params);

  // Where a rank is: the address of its worker, and which process it is.
  struct Place {
    std::string process;
    std::string address;
  };
  // Publishes this rank's place and waits until all ranks have. Throws DTRUN_TIMEOUT that names a
  // missing rank.
  void Join(const Place& place);
  // nullopt when the rank has left.
  std::optional<Place> PlaceOf(int peer) const;
  // This rank leaves in peace.
  void Leave() const;
  bool HasLeft(int peer) const;

  // Tells the others, unless one of them was first.
  void PublishFailure(const Cause& cause) const;
  // What another rank published, as this rank reports it.
  std::optional<Cause> TheirFailure() const;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  // "rank 2 has left 'world'; ..."
  Cause LeftCause(int peer) const;

 private:
  const sdk::Kv kv_;
  const int rank_;
  const int size_;
  const std::string name_;
  const sdk::Nanoseconds timeout_;
};

}  // namespace dtrun::ucx_plugin
