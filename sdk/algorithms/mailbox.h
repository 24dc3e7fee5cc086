// Ranks as threads that exchange messages through memory, for the tests of the algorithms.
//
// A send completes when the receiver has taken it, as over a real transport with full buffers: an
// algorithm that relies on buffering hangs here. Each Mailbox belongs to the thread of its rank;
// the Post behind them is shared and locked.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/algorithms.hpp"

namespace dtrun::algorithms {

class Post {
 public:
  struct Letter {
    const void* data = nullptr;
    void* place = nullptr;
    std::size_t bytes = 0;
    bool done = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  bool failed = false;
  // Letters from one rank to another (from, to) that wait for the matching call.
  std::map<std::pair<int, int>, std::deque<Letter*>> sends;
  std::map<std::pair<int, int>, std::deque<Letter*>> recvs;

  void Match(const std::pair<int, int>& pair) {
    auto& out = sends[pair];
    auto& in = recvs[pair];
    for (; !out.empty() && !in.empty(); out.pop_front(), in.pop_front()) {
      if (out.front()->bytes != in.front()->bytes) throw std::logic_error("sizes of a message differ");
      if (in.front()->bytes > 0) std::memcpy(in.front()->place, out.front()->data, in.front()->bytes);
      out.front()->done = in.front()->done = true;
      changed.notify_all();
    }
  }
};

class Mailbox final : public Messenger {
 public:
  Mailbox(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Message Send(int peer, const void* data, std::size_t bytes) override {
    return Start(true, {rank_, peer}, {data, nullptr, bytes});
  }
  Message Recv(int peer, void* data, std::size_t bytes) override {
    return Start(false, {peer, rank_}, {nullptr, data, bytes});
  }
  void Wait(Message message) override {
    auto* const letter = static_cast<Post::Letter*>(message);
    std::unique_lock lock(post_.mutex);
    if (letters_.count(letter) == 0) throw std::logic_error("a message was waited for twice");
    post_.changed.wait(lock, [&] { return letter->done || post_.failed; });
    if (!letter->done) throw sdk::Failure(DTRUN_ABORTED, "a rank failed");
    letters_.erase(letter);
    delete letter;
  }
  void Cancel() noexcept override {
    const std::lock_guard lock(post_.mutex);
    post_.failed = true;
    for (auto* queues : {&post_.sends, &post_.recvs}) {
      for (auto& [pair, queue] : *queues)
        std::erase_if(queue, [&](Post::Letter* l) { return letters_.count(l) > 0; });
    }
    for (Post::Letter* letter : letters_) delete letter;
    letters_.clear();
    cancelled_ = true;
    post_.changed.notify_all();
  }

  // The `number`-th message started throws.
  void FailAfter(int number) { fail_after_ = number; }
  std::size_t under_way() const { return letters_.size(); }
  bool cancelled() const { return cancelled_; }

 private:
  Message Start(bool sending, std::pair<int, int> pair, Post::Letter letter) {
    const std::lock_guard lock(post_.mutex);
    if (post_.failed || (fail_after_ > 0 && --fail_after_ == 0)) throw sdk::Failure(DTRUN_SYSTEM, "broken");
    auto* const mine = new Post::Letter(letter);
    letters_.insert(mine);
    (sending ? post_.sends : post_.recvs)[pair].push_back(mine);
    post_.Match(pair);
    return mine;
  }

  Post& post_;
  const int rank_;
  const int size_;
  int fail_after_ = 0;
  bool cancelled_ = false;
  std::set<Post::Letter*> letters_;
};

// Runs `body` on a thread for each rank.
inline void PlayRanks(int size, const std::function<void(Mailbox&)>& body) {
  Post post;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Mailbox mailbox(post, rank, size);
      body(mailbox);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dtrun::algorithms
