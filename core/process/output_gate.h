// Pauses reading of the ranks' output while too much of it is queued in memory to be sent.
//
// A rank then blocks in write once its pipe is full, and continues when the gate opens, so no output is lost.
// Owned by the agent of a remote host, which closes the gate when its channel to the root is behind; loop
// thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace dtrun::process {

class OutputGate {
 public:
  // Calls `go` now if the gate is open, otherwise as soon as it opens.
  void Pass(std::function<void()> go) {
    if (!closed_) return go();
    waiting_.push_back(std::move(go));
  }

  bool open() const { return !closed_; }
  void Close() { closed_ = true; }

  void Open() {
    closed_ = false;
    for (const auto& go : std::exchange(waiting_, {})) Pass(go);  // a callback may close the gate again
  }

 private:
  bool closed_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace dtrun::process
