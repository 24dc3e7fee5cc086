// Where ranks of one host wait for each other before a collective of MPI.
//
// Every rank comes to call 1, 2, 3 … Once the last has come, all of them must enter; before
// that, whoever waits may still go back. So a call that some rank skips ends at its deadline,
// by name, and no thread is lost in MPI. Costs one exclusive access to one cache line.
//
// One thread at a time uses Enter, Ready and GoBack of a rank; the rest: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/signature.hpp"
#include "page.h"

namespace dtrun::mpi_plugin {

class EntryBarrier {
 public:
  EntryBarrier(Page page, int rank, int size) : page_(std::move(page)), rank_(rank), size_(size) {}

  // Comes to the call; true when this rank is the last. Throws when another rank came with
  // another call: then this rank has not come.
  bool Enter(std::uint64_t call, const sdk::Signature& signature);
  // Whether all have come.
  bool Ready(std::uint64_t call) const;
  // False: too late, all have come.
  bool GoBack(std::uint64_t call);
  // Sleeps until someone wakes all, at most until `until`.
  void Sleep(std::uint64_t call, std::chrono::steady_clock::time_point until);
  // Wakes all who sleep.
  void Wake();

  // Announces that this rank comes no more. The first fate stays.
  void Depart(Fate fate, const std::string& reason, int culprit = -1);
  bool anyone_departed() const { return page_.header().departures.load(std::memory_order_acquire) != 0; }
  struct Departure {
    int rank;
    Fate fate;
    std::string reason;
    int culprit;  // the rank that it lost, -1 when it has another reason
  };
  // Another rank that departed; failures first.
  std::optional<Departure> FindDeparture() const;
  Fate FateOf(int rank) const { return page_.slot(rank).fate.load(std::memory_order_acquire); }

  // The call that a rank has come to last.
  std::uint64_t CallOf(int rank) const { return page_.slot(rank).call.load(std::memory_order_acquire); }
  sdk::Signature SignatureOf(int rank) const;

 private:
  [[noreturn]] void ThrowDisagreement(std::uint64_t call, const sdk::Signature& signature) const;

  Page page_;
  const int rank_;
  const int size_;
};

}  // namespace dtrun::mpi_plugin
