// The bytes of a fuzzer as choices: every input is a program, and small changes of it are small changes of
// what it does. Values; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::fuzz {

class Source {
 public:
  Source(const std::uint8_t* data, std::size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return left_.empty(); }
  std::uint8_t Byte() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  // Below `bound`.
  std::size_t Below(std::size_t bound) { return Byte() % bound; }
  bool Coin() { return (Byte() & 1) != 0; }
  bool Rarely() { return Byte() == 7; }

  // Mostly small, now and then what breaks arithmetic.
  std::int64_t Number() {
    static constexpr std::int64_t kStrange[] = {-1,        63,        64,         65,
                                                127,       255,       1000,       65535,
                                                65536,     134217727, 2147483647, -2147483648LL,
                                                1LL << 40, INT64_MAX, INT64_MIN};
    const std::uint8_t byte = Byte();
    if (byte < 208) return byte % 4;
    return kStrange[byte % (sizeof kStrange / sizeof *kStrange)];
  }
  int Int() { return static_cast<int>(Number()); }
  // For an index: mostly below `count`.
  int Index(std::size_t count) {
    const int number = Int();
    return number >= 0 && number < 4 && count > 0 ? static_cast<int>(static_cast<std::size_t>(number) % count)
                                                  : number;
  }
  std::size_t Count() {
    const std::uint8_t byte = Byte();
    return byte < 250 ? byte % 4 : 300;
  }
  std::string Bytes(std::size_t most) {
    const std::size_t size = std::min({static_cast<std::size_t>(Byte()), most, left_.size()});
    std::string bytes(left_.substr(0, size));
    left_.remove_prefix(size);
    return bytes;
  }
  // A name of a few, so that it is met again.
  std::string Name() {
    static constexpr const char* kNames[] = {"a",      "b", "eth0",     "world", "pmi1/0",
                                             "pmi1/1", "",  "x\x1b[2J", "..",    "é"};
    return kNames[Below(sizeof kNames / sizeof *kNames)];
  }

 private:
  std::string_view left_;
};

}  // namespace dtrun::fuzz
