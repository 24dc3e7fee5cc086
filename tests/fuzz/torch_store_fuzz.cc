// Feeds torch's store as strangers could: nothing crashes, what it keeps stays within its limit and is given
// back when they leave, and a value that was set is there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "core/store/torch_table.h"
#include "core/store/torch_wire.h"
#include "tests/fuzz/target.h"

namespace torch_store_fuzz {

using dtrun::store::TorchOp;
using dtrun::store::TorchReader;
using dtrun::store::TorchTable;

// Pieces of "CLIENT SIZE BYTES": a byte, a byte, and so many. Client 255 makes one of them leave.
DTRUN_FUZZ_TARGET(torch_store)(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kLimit = 1 << 20;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::map<TorchTable::Client, std::size_t> sent;
  TorchTable table([&](TorchTable::Client client, const std::string& bytes) { sent[client] += bytes.size(); },
                   {.bytes = kLimit, .reply_bytes = kLimit});
  std::map<TorchTable::Client, TorchReader> readers;
  while (text.size() >= 2) {
    const auto client = static_cast<std::uint8_t>(text[0]);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(text[1]), text.size() - 2);
    const std::string_view bytes = text.substr(2, length);
    text.remove_prefix(2 + length);
    if (client == 255) {
      readers.erase(length);
      table.Forget(length);
      continue;
    }
    TorchReader& reader = readers[client];
    reader.Append(bytes);
    for (;;) {
      auto next = reader.Next();
      if (next && !*next) break;
      if (next) {
        const dtrun::store::TorchRequest request = **next;
        const std::size_t before = sent[client];
        const bool taken = static_cast<bool>(table.Take(client, **std::move(next)));
        if (taken && request.op == TorchOp::kSet) {
          if (!table.Take(client, {TorchOp::kGet, {request.fields[0]}, 0})) std::abort();
          if (sent[client] - before < 8 + request.fields[1].size()) std::abort();
        }
        if (table.bytes() > kLimit) std::abort();
        if (taken) continue;
      }
      readers.erase(client);  // as the server drops it
      table.Forget(client);
      break;
    }
  }
  return 0;
}

}  // namespace torch_store_fuzz
