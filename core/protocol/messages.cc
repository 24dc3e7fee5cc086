#include "core/protocol/messages.h"

#include "core/wire/coder.h"

namespace dtrun::protocol {
namespace {

constexpr std::string_view kWhat = "message between root and agent";

}  // namespace

std::string Encode(const ToAgent& message) { return wire::Encode(message); }
std::string Encode(const ToRoot& message) { return wire::Encode(message); }

Result<ToAgent> DecodeToAgent(std::string_view bytes) { return wire::Decode<ToAgent>(bytes, kWhat); }
Result<ToRoot> DecodeToRoot(std::string_view bytes) { return wire::Decode<ToRoot>(bytes, kWhat); }

}  // namespace dtrun::protocol
