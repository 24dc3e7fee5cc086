// What a client of metrics.listen asks, read from bytes that anybody may have sent.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrun::metrics {

inline constexpr std::size_t kMostRequestBytes = 8192;

struct Request {
  unsigned status = 0;  // of the answer; 0: more bytes must come
  bool wants_body = true;
};

// The request at the start of `bytes`. 200: the page. `token`: what the client has to send, as
// "Authorization: Bearer TOKEN"; empty: nothing.
Request ReadRequest(std::string_view bytes, std::string_view token);

// The whole answer, with its head; an answer without the page says what is wrong.
std::string AnswerHead(unsigned status, std::size_t body_bytes);
std::string_view AnswerText(unsigned status);

}  // namespace dtrun::metrics
