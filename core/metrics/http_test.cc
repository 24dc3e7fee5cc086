#include "core/metrics/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::metrics {
namespace {

unsigned StatusOf(const std::string& bytes, std::string_view token = "") {
  return ReadRequest(bytes, token).status;
}

TEST(HttpRequest, AsksForThePage) {
  EXPECT_EQ(StatusOf("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 200u);
  EXPECT_EQ(StatusOf("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), 200u);
  EXPECT_TRUE(ReadRequest("GET /metrics HTTP/1.1\r\n\r\n", "").wants_body);
  EXPECT_EQ(StatusOf("HEAD /metrics HTTP/1.1\r\n\r\n"), 200u);
  EXPECT_FALSE(ReadRequest("HEAD /metrics HTTP/1.1\r\n\r\n", "").wants_body);
}

TEST(HttpRequest, MayComeInPieces) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(StatusOf(whole.substr(0, size)), 0u) << size;
  EXPECT_EQ(StatusOf(whole), 200u);
}

TEST(HttpRequest, OthersGetAnError) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 404u);
  EXPECT_EQ(StatusOf("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n"), 404u);
  EXPECT_EQ(StatusOf("POST /metrics HTTP/1.1\r\n\r\n"), 405u);
  EXPECT_EQ(StatusOf("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400u) << "TLS";
  EXPECT_EQ(StatusOf("hello\r\n\r\n"), 400u);
  EXPECT_EQ(StatusOf("GET /metrics HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n"), 400u);
  EXPECT_EQ(StatusOf("GET /metrics HTTP/1.1\r\nX: " + std::string(kMostRequestBytes, 'a')), 431u);
  EXPECT_EQ(StatusOf("GET /" + std::string(2 * kMostRequestBytes, 'a')), 431u);
  for (const unsigned status : {400u, 401u, 404u, 405u, 431u}) {
    EXPECT_FALSE(AnswerText(status).empty());
    EXPECT_THAT(AnswerHead(status, 5), ::testing::HasSubstr("Content-Length: 5\r\n"));
  }
}

TEST(HttpRequest, NeedsTheToken) {
  const auto with = [](const std::string& value) {
    return "GET /metrics HTTP/1.1\r\nAuthorization: " + value + "\r\n\r\n";
  };
  EXPECT_EQ(StatusOf(with("Bearer secret"), "secret"), 200u);
  EXPECT_EQ(StatusOf(with("bearer secret"), "secret"), 200u);
  for (const char* wrong :
       {"", "secret", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret"})
    EXPECT_EQ(StatusOf(with(wrong), "secret"), 401u) << wrong;
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n", "secret"), 401u);
  EXPECT_EQ(StatusOf(with("Bearer secret")), 200u) << "a token that is not needed";
}

}  // namespace
}  // namespace dtrun::metrics
