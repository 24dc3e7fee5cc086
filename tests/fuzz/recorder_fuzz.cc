// The flight recorder's memory as ranks gone mad write it, read by the agent of their host, told to another
// host, and read by a rank there. Readers end, stay in the memory, and say only lines.
//
// Input: steps of one byte each and what they take. Ranks 0 and 1 live here and 2 and 3 elsewhere.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/contract/checker.h"
#include "core/contract/mapping.h"
#include "core/contract/messages.h"
#include "core/contract/ring.h"
#include "core/contract/window.h"
#include "tests/fuzz/target.h"

namespace recorder_fuzz {

namespace contract = dtrun::contract;
namespace sdk = dtrun::sdk;

constexpr int kRanks = 4;
constexpr int kMostSteps = 200;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void RequirePrintable(const std::string& text, bool lines) {
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    Require((byte >= 0x20 && byte != 0x7f) || (lines && letter == '\n'), "a text has control characters");
  }
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool more() const { return size_ > 0; }
  // Zeros when there is no more.
  template <class T>
  T Take() {
    T value{};
    const std::size_t bytes = size_ < sizeof value ? size_ : sizeof value;
    std::memcpy(&value, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

contract::RecorderMapping MakeRecorderMemory() {
  auto mapping = contract::RecorderMapping::Create(kRanks);
  if (!mapping) std::abort();
  return *std::move(mapping);
}

struct Site {
  explicit Site(std::vector<int> ranks)
      : here(std::move(ranks)), checker(recorder_memory()), reporter(recorder_memory(), here) {}

  // Both sites are made anew for each input; their memory is not.
  static const contract::RecorderMapping& Memory(int first) {
    static const contract::RecorderMapping recorders[2] = {MakeRecorderMemory(), MakeRecorderMemory()};
    return recorders[first / 2];
  }
  const contract::RecorderMemory& recorder_memory() const { return Memory(here[0]).recorder_memory(); }
  void Clear() const {
    std::memset(static_cast<void*>(recorder_memory().PagesOf(0)), 0, kRanks * contract::kRankPagesBytes);
    for (const int rank : here) Open(rank, "world", rank, kRanks);
  }
  contract::Ring* Open(int rank, const std::string& name, int inner, int size) const {
    return contract::OpenRing(recorder_memory(), rank, contract::NameDigest(name), name, inner, size);
  }

  std::vector<int> here;
  contract::Checker checker;
  contract::Reporter reporter;
};

void Look(Site& site, const Site& other) {
  if (const auto difference = site.checker.Check()) {
    Require(difference->first != difference->second, "two ranks differ");
    RequirePrintable(difference->text, false);
    site.reporter.Tell(difference->communicator);
  }
  for (const auto& damage : site.checker.TakeDamage()) RequirePrintable(damage.text, false);
  for (const contract::Window& window : site.reporter.Report()) {
    Require(window.calls.size() <= contract::kEntries, "no more calls than are remembered");
    Require(window.checkpoints.size() <= contract::kCheckpoints, "no more checkpoints than are remembered");
    contract::Enter(other.recorder_memory(), other.here, window);
  }
  for (const int rank : site.here) RequirePrintable(site.checker.History(rank), true);
}

// A rank writes anywhere into its pages, mostly where something stands.
void Scribble(Input& input, const contract::RecorderMemory& recorder_memory, int rank) {
  auto* const pages = reinterpret_cast<unsigned char*>(recorder_memory.PagesOf(rank));
  const auto how = input.Take<std::uint8_t>();
  const auto where = input.Take<std::uint16_t>();
  std::size_t at = where;
  if (how & 1) at = (where % contract::kRings) * sizeof(contract::Ring) + where / contract::kRings % 256;
  if (how & 2) at = at / 8 * 8;
  std::uint64_t value = input.Take<std::uint64_t>();
  if (how & 4) value = std::uint64_t{1} << (value % 64);
  if (how & 8) value = 0 - value;
  const std::size_t words = how & 16 ? 1 + how / 32 * 100 : 1;
  for (std::size_t i = 0; i < words && at + sizeof value <= contract::kRankPagesBytes;
       ++i, at += sizeof value) {
    std::memcpy(pages + at, &value, sizeof value);
  }
}

void CallOn(Input& input, const contract::RecorderMemory& recorder_memory, int rank) {
  contract::Ring& ring = recorder_memory.RingsOf(rank)[input.Take<std::uint8_t>() % 3];
  sdk::Signature call;
  call.kind = input.Take<std::uint8_t>();
  call.count = call.kind;
  const int calls = 1 + input.Take<std::uint8_t>();
  for (int i = 0; i < calls; ++i) contract::Begin(ring, ring.started.load() + 1, call);
  if (calls & 1) contract::End(ring, ring.started.load());
  if ((calls & 2) == 0) return;
  const auto what = input.Take<std::uint8_t>();
  contract::NameDevice(ring, "npu");
  contract::Note(ring, {.sends = (what & 1) != 0,
                        .peer = what / 8 % 5 - 1,
                        .tag = what / 64u,
                        .on_device = (what & 2) != 0,
                        .counted = (what & 4) == 0});
}

// As the agent of another host tells it that is out of its mind.
void EnterAnything(Input& input, const Site& site) {
  contract::Window window;
  window.communicator = input.Take<std::uint64_t>();
  if (window.communicator % 2 == 0) window.communicator = contract::NameDigest("world");
  window.name = std::string(input.Take<std::uint8_t>(), static_cast<char>(input.Take<std::uint8_t>()));
  window.size = input.Take<std::int32_t>();
  window.members = {{input.Take<std::int8_t>(), input.Take<std::int32_t>()}};
  window.freed = input.Take<std::uint8_t>() % 4 == 0;
  if (input.Take<std::uint8_t>() % 2 == 0) {
    window.idle = contract::Idle{input.Take<std::uint64_t>(), input.Take<std::uint64_t>()};
  }
  contract::Window::Seen seen;
  seen.number = input.Take<std::uint64_t>();
  seen.call.kind = input.Take<std::uint8_t>();
  window.calls = {seen};
  window.checkpoints = {{input.Take<std::uint64_t>(), input.Take<std::uint64_t>()}};
  window.device = "npu";
  window.messages = {
      {input.Take<std::uint64_t>() >> 28, input.Take<std::uint64_t>(), input.Take<std::uint64_t>()}};
  contract::Enter(site.recorder_memory(), site.here, window);
}

DTRUN_FUZZ_TARGET(recorder)(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Site sites[2] = {Site({0, 1}), Site({2, 3})};
  for (const Site& site : sites) site.Clear();
  for (int step = 0; step < kMostSteps && input.more(); ++step) {
    const auto what = input.Take<std::uint8_t>();
    Site& site = sites[what / 64 % 2];
    const int rank = site.here[static_cast<std::size_t>(what / 128)];
    switch (what % 8) {
      case 0:
      case 1: Scribble(input, site.recorder_memory(), rank); break;
      case 2: CallOn(input, site.recorder_memory(), rank); break;
      case 3: EnterAnything(input, site); break;
      case 4: site.Open(rank, "world." + std::to_string(input.Take<std::uint8_t>() % 4), rank % 2, 2); break;
      case 5:
        site.recorder_memory().RingsOf(rank)[input.Take<std::uint8_t>() % contract::kRings].communicator = 0;
        break;
      default: Look(site, sites[what / 64 % 2 == 0 ? 1 : 0]);
    }
  }
  for (int look = 0; look < 6; ++look) {
    Look(sites[0], sites[1]);
    Look(sites[1], sites[0]);
  }
  return 0;
}

}  // namespace recorder_fuzz
