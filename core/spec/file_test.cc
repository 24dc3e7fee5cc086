#include "core/spec/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kUnprivileged = 65534;

std::string Refusal(const std::filesystem::path& path) {
  const Result<std::string> text = ReadFile(path);
  return text ? "accepted" : text.error().text;
}

TEST(ReadFile, GivesTheBytesOfAFile) {
  TestFolder folder;
  EXPECT_EQ(*ReadFile(folder.Write("a", std::string("x\0\xff", 3))), std::string("x\0\xff", 3));
  EXPECT_EQ(*ReadFile(folder.Write("b", "")), "");
}

TEST(ReadFile, LeavesAByteOrderMarkOut) {
  TestFolder folder;
  EXPECT_EQ(*ReadFile(folder.Write("hosts", "\xef\xbb\xbfnode0:2\n")), "node0:2\n");
  EXPECT_EQ(*ReadFile(folder.Write("later", "node0\n\xef\xbb\xbf")), "node0\n\xef\xbb\xbf");
}

TEST(ReadFile, ExplainsAMissingFileAndAFolder) {
  TestFolder folder;
  EXPECT_EQ(Refusal(folder.path() / "none.toml"), "cannot open the file: no such file or directory");
  EXPECT_EQ(Refusal(folder.path()), "this is a folder; give the path of a file in it");
}

TEST(ReadFile, SaysWhereAMissingConfigMayBe) {
  TestFolder folder;
  EXPECT_THAT(folder.ProblemsOf(""), HasSubstr("the file is empty"));  // writes train.toml
  Request request;
  request.file = folder.path() / "trian.toml";
  EXPECT_THAT(Render(Load(request, {}).problems),
              HasSubstr("did you mean '" + folder.path().string() + "/train.toml'?"));
  request.file = "no-such-folder/another.toml";
  EXPECT_THAT(Render(Load(request, {}).problems),
              HasSubstr("it was looked for at '" + std::filesystem::absolute(request.file).string() + "'"));
}

TEST(ReadFile, ExplainsAFileThatMayNotBeRead) {
  TestFolder folder;
  const auto path = folder.Write("a", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const uid_t before = ::geteuid();
  // Root may read everything, so it switches to another user for the call.
  if (before == 0) {
    ASSERT_EQ(::seteuid(kUnprivileged), 0);
  }
  const std::string refusal = Refusal(path);
  ASSERT_EQ(::seteuid(before), 0);
  EXPECT_EQ(refusal,
            "cannot open the file: permission denied; make it and its folders readable for this user");
}

TEST(ReadFile, RefusesWhatIsTooLargeWithoutReadingItAll) {
  TestFolder folder;
  const auto path = folder.Write("a", "");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(Refusal(path),
            "the file has more than 1MiB, the most that is read; check that it is the right file");
  ASSERT_EQ(::truncate(path.c_str(), kMaxFileBytes), 0);
  EXPECT_EQ(ReadFile(path)->size(), kMaxFileBytes);
  EXPECT_THAT(Refusal("/dev/zero"), HasSubstr("the file has more than 1MiB"));
}

TEST(ReadFile, WaitsForTheWriterOfANamedPipe) {
  TestFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "text"; });  // opens when there is a reader
  const Result<std::string> read = ReadFile(path);
  writer.join();
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(*read, "text");
}

TEST(ReadFile, RefusesANamedPipeThatNobodyWritesInto) {
  TestFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Refusal(path), "this is a pipe without a writer; start its writer first, or name a file");
}

TEST(ReadFile, DoesNotWaitForAPipeWhoseWriterHasGone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  EXPECT_EQ(*ReadFile("/proc/self/fd/" + std::to_string(ends[0])), "");
  ::close(ends[0]);
}

TEST(ReadFile, ReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(100'000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t sent = ::write(ends[1], rest.data(), rest.size());
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    ::close(ends[1]);
  });
  const Result<std::string> read = ReadFile("/proc/self/fd/" + std::to_string(ends[0]));
  writer.join();
  ::close(ends[0]);
  ASSERT_TRUE(read.ok()) << read.error().text;
  EXPECT_EQ(*read, text);
}

}  // namespace
}  // namespace dtrun::spec
