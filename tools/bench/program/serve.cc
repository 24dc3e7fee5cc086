// The measuring loop shared by all layers.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "tools/bench/program/channel.h"
#include "tools/bench/program/peer.h"

namespace dtrun::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPage = 4096;

class Buffer {
 public:
  Buffer(Peer& peer, bool registered, std::uint64_t bytes)
      : peer_(registered ? &peer : nullptr), bytes_((bytes + kPage) / kPage * kPage) {
    memory_ = peer_ != nullptr ? peer_->Allocate(bytes_) : std::aligned_alloc(kPage, bytes_);
    if (memory_ == nullptr) throw std::runtime_error(fmt::format("no memory for {} bytes", bytes_));
  }
  ~Buffer() { peer_ != nullptr ? peer_->Free(memory_) : std::free(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* get() const { return memory_; }

 private:
  Peer* peer_;
  std::uint64_t bytes_;
  void* memory_ = nullptr;
};

// A call and its buffers.
struct Prepared {
  Call call;
  std::unique_ptr<Buffer> send, recv;
};

class Server {
 public:
  explicit Server(Peer& peer) : peer_(peer) {}

  std::string Answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, buffers;
    words >> verb >> buffers;
    try {
      if (verb == "prepare") return Prepare(buffers == "registered", prepared_[buffers], words);
      if (verb == "check") return CheckOnce(prepared_.at(buffers).call);
      if (verb == "run") return Measure(prepared_.at(buffers).call, words);
      return fmt::format("error unknown request '{}'", line);
    } catch (const Unsupported& reason) {
      return fmt::format("unsupported {}", reason.what());
    } catch (const std::exception& failure) {
      return fmt::format("error {}", failure.what());
    }
  }

 private:
  std::string Prepare(bool registered, Prepared& prepared, std::istringstream& words) {
    std::string operation, type;
    std::uint64_t bytes = 0;
    words >> operation >> type >> bytes;
    const Result<Element> element = ParseElement(type);
    if (!element) return "error " + element.error().text;
    Call call;
    if (operation == OperationName(Operation::kCopy)) {
      call.operation = Operation::kCopy;
    } else {
      const Result<Operation> parsed = ParseOperation(operation);
      if (!parsed) return "error " + parsed.error().text;
      call.operation = *parsed;
    }
    call.element = *element;
    call.shape = ShapeOf(call.operation, static_cast<std::uint64_t>(peer_.ranks()), bytes, element->size);
    prepared = {};  // free the old buffers first: they may occupy all memory
    if (call.operation != Operation::kBarrier) {
      prepared.send = std::make_unique<Buffer>(peer_, registered, call.shape.send * element->size);
      prepared.recv = std::make_unique<Buffer>(peer_, registered, call.shape.recv * element->size);
      call.send = prepared.send->get();
      call.recv = prepared.recv->get();
      Fill(call, peer_.rank());
    }
    prepared.call = call;
    return "ok";
  }

  std::string CheckOnce(const Call& call) {
    peer_.Run(call);
    const Status checked = Check(call, peer_.rank(), peer_.ranks());
    return checked ? "ok" : fmt::format("wrong rank {}: {}", peer_.rank(), checked.error().text);
  }

  std::string Measure(const Call& call, std::istringstream& words) {
    std::uint64_t warmup = 0, samples = 0, iterations = 1;
    words >> warmup >> samples >> iterations;
    for (std::uint64_t i = 0; i < warmup; ++i) peer_.Run(call);
    std::vector<double> times(samples);
    for (double& time : times) {
      peer_.Barrier();
      const Clock::time_point start = Clock::now();
      for (std::uint64_t i = 0; i < iterations; ++i) peer_.Run(call);
      const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
      time = spent.count() / static_cast<double>(iterations);
    }
    std::string answer = "times";
    for (const double time : times) answer += fmt::format(" {:.2f}", time);
    return answer;
  }

  Peer& peer_;
  std::map<std::string, Prepared> prepared_;
};

}  // namespace

void* Peer::Allocate(std::uint64_t bytes) {
  return std::aligned_alloc(kPage, (bytes + kPage) / kPage * kPage);
}
void Peer::Free(void* memory) { std::free(memory); }

int RankVariable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) throw std::runtime_error(fmt::format("{} is not set; start it with dtrun", name));
  return std::atoi(text);
}

int ServeAsRank(int argc, char** argv, Peer* (*make)(int argc, char** argv)) {
  if (argc < 2) {
    std::fputs("this program is a rank of `dtrun bench`, which starts it; see dtrun bench --help\n", stderr);
    return 2;
  }
  try {
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<Peer> peer(make(argc - 2, argv + 2));
    const std::chrono::duration<double> joining = Clock::now() - start;
    Result<Channel> channel = Channel::Connect(argv[1]);
    if (!channel) throw std::runtime_error(channel.error().text);
    channel->Send(fmt::format("hello {} {} {:.6f} {}", peer->rank(), peer->ranks(), joining.count(),
                              peer->description()));
    Server server(*peer);
    while (const auto line = channel->Receive()) {
      if (!channel->Send(server.Answer(*line))) break;
    }
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench: %s\n", failure.what());
    return 1;
  }
}

}  // namespace dtrun::bench
