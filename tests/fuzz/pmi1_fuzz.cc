// Fuzzes what a rank may send over PMI-1, and what hosts exchange: nothing crashes, requests do not
// depend on how their bytes are cut into reads, and pairs that decode encode to the same pairs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/pmi/pmi1_wire.h"
#include "tests/fuzz/target.h"

namespace pmi1_fuzz {

using dtrun::pmi::Pmi1Reader;

void Require(bool holds) {
  if (!holds) std::abort();
}

std::string Requests(std::string_view bytes, std::size_t read_size) {
  Pmi1Reader reader;
  std::string all;
  for (;;) {
    for (;;) {
      const auto request = reader.Next();
      if (!request) return all + "error";
      if (!*request) break;
      all += (*request)->command;
      for (const auto& [name, value] : (*request)->fields) all += " " + name + "=" + value;
      all += "\n";
    }
    if (bytes.empty()) return all;
    const std::size_t size = std::min(read_size, bytes.size());
    reader.Append(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
}

DTRUN_FUZZ_TARGET(pmi1)(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Require(Requests(bytes, size + 1) == Requests(bytes, 1));
  if (const auto pairs = dtrun::pmi::DecodePairs(bytes)) {
    Require(*dtrun::pmi::DecodePairs(dtrun::pmi::EncodePairs(*pairs)) == *pairs);
  }
  return 0;
}

}  // namespace pmi1_fuzz
