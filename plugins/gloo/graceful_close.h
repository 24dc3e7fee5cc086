// Closes the connections of a rank that leaves so that nothing it sent is lost.
//
// A kernel throws away what a closed socket has not delivered yet when the peer writes to it, and a peer that
// waits for a lost packet may write meanwhile. So the sockets stay open until the peers have closed theirs,
// which Gloo does as soon as it has read everything. Gloo closes its sockets itself; libglpH.so.0 calls this
// instead (hooks.cc). For the thread that made it, between construction and destruction; others are as ever.
#pragma once

#include <chrono>
#include <vector>

namespace dtrun::gloo_plugin {

class __attribute__((visibility("default"))) GracefulClose {
 public:
  // `until`: when to give up on peers that do not close.
  explicit GracefulClose(std::chrono::steady_clock::time_point until);
  // Waits for the peers and closes.
  ~GracefulClose();
  GracefulClose(const GracefulClose&) = delete;
  GracefulClose& operator=(const GracefulClose&) = delete;

  // Of the calling thread; null: sockets are closed at once.
  static GracefulClose* Current();
  // Owns `socket` from now on, which sends nothing more.
  void Take(int socket);

 private:
  const std::chrono::steady_clock::time_point until_;
  std::vector<int> sockets_;
};

}  // namespace dtrun::gloo_plugin
