// Holds up reads of what ranks print while more of it waits to be sent than memory should hold.
//
// A rank whose pipe nobody reads waits in its next write once the pipe is full, and goes on when the gate
// opens: nothing is lost. Owned by the agent of a host elsewhere, which closes it when its channel to the
// root is behind; loop thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace dtrun::process {

class OutputGate {
 public:
  // Calls `go` now when the gate is open, else as soon as it is.
  void Pass(std::function<void()> go) {
    if (!closed_) return go();
    waiting_.push_back(std::move(go));
  }

  bool open() const { return !closed_; }
  void Close() { closed_ = true; }

  void Open() {
    closed_ = false;
    for (const auto& go : std::exchange(waiting_, {})) Pass(go);  // one of them may close it again
  }

 private:
  bool closed_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace dtrun::process
