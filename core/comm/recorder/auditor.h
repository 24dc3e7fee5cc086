// The agent's side of the flight recorder: compares what the ranks of a host call.
//
// Every call is checked, also those that are long over: the digests of all calls up to one
// number agree or they do not. Owned by the agent; its loop thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/comm/recorder/mapping.h"

namespace dtrun::comm {

class Auditor {
 public:
  explicit Auditor(BookHead* book) : book_(book) {}

  // Compares once. The first difference is written into the book, the ranks are woken, and it
  // is returned; later audits find nothing more.
  std::optional<std::string> Audit();

  // What the ranks called last, oldest first: a page for people, for after a failure.
  std::string History() const;

 private:
  struct Member {
    int world_rank;
    const Journal* journal;
  };

  std::optional<std::string> Compare(const Member& first, const Member& second);
  void Ring(std::uint64_t communicator, int first, int second, const std::string& text);

  BookHead* const book_;
  bool rung_ = false;
};

}  // namespace dtrun::comm
