#include "core/base/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun {
namespace {

using ::testing::ElementsAre;

TEST(Secrets, AreKnownByTheirNames) {
  for (const char* name : {"GITHUB_TOKEN",
                           "PASSWORD",
                           "DB_PASS",
                           "PGPASSWORD",
                           "MYSQL_PWD",
                           "API_KEY",
                           "apiKey",
                           "api-key",
                           "--api-key",
                           "WANDB_API_KEY",
                           "AWS_SECRET_ACCESS_KEY",
                           "GITHUBTOKEN",
                           "DEPLOY_KEY",
                           "AUTHORIZATION",
                           "client.secret",
                           "KEY",
                           "HF_TOKEN",
                           "GOOGLE_CREDENTIALS",
                           "PGPASS",
                           "SSHPASS",
                           "CI_JOB_JWT",
                           "CI_JOB_JWT_V2",
                           "API_KEY_V1"}) {
    EXPECT_TRUE(NamesSecret(name)) << name;
    EXPECT_EQ(MaskValue(name, "x"), "(secret)") << name;
  }
  for (const char* name : {"PATH",        "PWD",           "HOME",          "TOKENIZERS_PARALLELISM",
                           "--tokenizer", "--max-tokens",  "--sort-key",    "--num-key-value-heads",
                           "KEYBOARD",    "SSH_AUTH_SOCK", "MONKEY",        "PASSAGE",
                           "AUTHOR",      "job.command",   "--bypass",      "BYPASS",
                           "NUM_BYPASS",  "PGPASSFILE",    "JWT_ALGORITHM", "--sort-key-v2"}) {
    EXPECT_FALSE(NamesSecret(name)) << name;
    EXPECT_EQ(MaskValue(name, "7"), "7") << name;
  }
}

TEST(Secrets, OfNamesThatOnlySoundSoAreKnownByTheirValues) {
  EXPECT_EQ(MaskValue("AWSKEYS", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5"), "(secret)");
  EXPECT_EQ(MaskValue("KEYBOARD", "de-latin1"), "de-latin1");
  EXPECT_EQ(MaskValue("KEYRING", "/usr/share/keyrings/debian-2024-1.gpg"),
            "/usr/share/keyrings/debian-2024-1.gpg");
  EXPECT_EQ(MaskValue("RUN", "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5"), "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5");
}

TEST(Secrets, InUrlsAreThePasswords) {
  EXPECT_EQ(MaskText("postgres://ann:hunter2@db:5432/x"), "postgres://ann:(secret)@db:5432/x");
  EXPECT_EQ(MaskText("redis://:hunter2@cache"), "redis://:(secret)@cache");
  EXPECT_EQ(MaskText("https://1234abcd@o1.ingest.sentry.io/2"), "https://(secret)@o1.ingest.sentry.io/2");
  EXPECT_EQ(MaskText("see https://a:p@ss@h/ and http://b:c@d"),
            "see https://a:(secret)@h/ and http://b:(secret)@d");
  EXPECT_EQ(MaskText("https://s/x?token=abc&user=me"), "https://s/x?token=(secret)&user=me");
  for (const char* harmless :
       {"ssh://git@github.com/x", "https://example.org/a@b", "tcp://10.0.0.1:29500", "://"}) {
    EXPECT_EQ(MaskText(harmless), harmless);
  }
}

TEST(Secrets, HaveShapes) {
  const std::string tail = "0123456789abcdefghijABCDEFGHIJklmnop";
  for (const std::string prefix : {"ghp_", "github_pat_", "hf_", "sk-", "sk-ant-api03-", "sk-proj-", "xoxb-",
                                   "AIza", "glpat-", "nvapi-"}) {
    EXPECT_EQ(MaskText("a " + prefix + tail + ", b"), "a (secret), b") << prefix;
  }
  EXPECT_EQ(MaskText("AKIAIOSFODNN7EXAMPLE"), "(secret)");
  EXPECT_EQ(MaskText("x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3"), "x=(secret)");
  EXPECT_EQ(MaskText("Authorization: Bearer abcdefgh12345"), "Authorization: (secret)");
  EXPECT_EQ(MaskText("curl -H 'Bearer abcdefgh12345'"), "curl -H 'Bearer (secret)'");
  EXPECT_EQ(MaskText("k:\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest"),
            "k:\n(secret)\nrest");
  for (const char* harmless : {"sk-learn", "hf_hub", "task-0123456789abcdefghij0123", "eyJ", "risk-free",
                               "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"}) {
    EXPECT_EQ(MaskText(harmless), harmless);
  }
}

TEST(Secrets, StandAfterTheirNames) {
  EXPECT_EQ(MaskText("--api-key=abc"), "--api-key=(secret)");
  EXPECT_EQ(MaskText("PASSWORD=abc python train.py --lr 1"), "PASSWORD=(secret) python train.py --lr 1");
  EXPECT_EQ(MaskText("run --token abc --lr 1"), "run --token (secret) --lr 1");
  EXPECT_EQ(MaskText("Server=x;Password='a b';Y=1"), "Server=x;Password='(secret)';Y=1");
  EXPECT_EQ(MaskText(R"-({"apiKey": "abc", "n": 1})-"), R"-({"apiKey": "(secret)", "n": 1})-");
  EXPECT_EQ(MaskText("--max-tokens=512 --tokenizer=gpt2"), "--max-tokens=512 --tokenizer=gpt2");
}

TEST(Secrets, FollowTheirOptions) {
  EXPECT_THAT(
      MaskArguments({"train", "--token", "abc", "--lr", "1", "--api-key=x", "--password", "--verbose"}),
      ElementsAre("train", "--token", "(secret)", "--lr", "1", "--api-key=(secret)", "--password",
                  "--verbose"));
  EXPECT_THAT(MaskArguments({"sh", "-c", "DB=postgres://a:b@c x"}),
              ElementsAre("sh", "-c", "DB=postgres://a:(secret)@c x"));
}

TEST(Secrets, FollowOptionsThatDoNotSaySo) {
  EXPECT_THAT(MaskArguments({"curl", "-su", "ann:hunter2", "https://h/x:y"}),
              ElementsAre("curl", "-su", "ann:(secret)", "https://h/x:y"));
  EXPECT_THAT(MaskArguments({"/usr/bin/mysql", "-phunter2", "-P3306", "-p", "shop"}),
              ElementsAre("/usr/bin/mysql", "-p(secret)", "-P3306", "-p", "shop"));
  EXPECT_THAT(MaskArguments({"sshpass", "-p", "hunter2", "ssh", "-p", "22", "h"}),
              ElementsAre("sshpass", "-p", "(secret)", "ssh", "-p", "22", "h"));
  EXPECT_THAT(MaskArguments({"sh", "-c", "curl --user=ann:a; mysql -pa -u ann:b"}),
              ElementsAre("sh", "-c", "curl --user=ann:(secret); mysql -p(secret) -u ann:b"));
  EXPECT_EQ(MaskText("sh -c 'curl -u ann:hunter2' && x"), "sh -c 'curl -u ann:(secret)' && x");
  EXPECT_EQ(MaskText("curl -u 'ann:a b c' x"), "curl -u 'ann:(secret)' x");
  EXPECT_EQ(MaskText("mysql -p'a b c' x"), "mysql -p(secret) x");
  for (const char* harmless : {"docker run -u 1000:1000 curl", "python -u a:b", "curl -u ann https://h",
                               "curl --user-agent=a:b", "train -p8 --user ann:b", "curl x; id -u a:b"}) {
    EXPECT_EQ(MaskText(harmless), harmless);
  }
}

TEST(Secrets, StandInNetrc) {
  EXPECT_EQ(MaskValue("NETRC", "machine h.org login ann password hunter2 machine i.org"),
            "machine h.org login ann password (secret) machine i.org");
  EXPECT_EQ(MaskText("machine h\n\tlogin ann\n\tpassword hunter2\n"),
            "machine h\n\tlogin ann\n\tpassword (secret)\n");
  EXPECT_EQ(MaskValue("NETRC", "/home/ann/.netrc"), "/home/ann/.netrc");
  EXPECT_EQ(MaskText("the password is wrong"), "the password is wrong");
}

}  // namespace
}  // namespace dtrun
