#include "core/base/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun {
namespace {

using ::testing::ElementsAre;

TEST(Secrets, AreKnownByTheirNames) {
  for (const char* name : {"GITHUB_TOKEN",
                           "MY_CREDS",
                           "LDAP_BINDPW",
                           "OTP_SEED",
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
                           "--pw",
                           "DB_PW",
                           "API_KEY_V1",
                           "SESSION_ID",
                           "PHPSESSID",
                           "WEB_SESSIONID",
                           "PIN",
                           "MY_PIN",
                           "DBPWD",
                           "--pin",
                           "--my-pin",
                           "my_pin",
                           "--pgpass",
                           "--session-id",
                           "sessionId",
                           "--phpsessid",
                           "--dbpwd",
                           "--db-pw",
                           "--ci-jwt"}) {
    EXPECT_TRUE(NamesSecret(name)) << name;
    EXPECT_EQ(MaskValue(name, "x"), "(secret)") << name;
  }
  for (const char* name : {"PATH",        "PWD",           "HOME",          "TOKENIZERS_PARALLELISM",
                           "--tokenizer", "--max-tokens",  "--sort-key",    "--num-key-value-heads",
                           "KEYBOARD",    "SSH_AUTH_SOCK", "MONKEY",        "PASSAGE",
                           "AUTHOR",      "job.command",   "--bypass",      "BYPASS",
                           "NUM_BYPASS",  "PGPASSFILE",    "JWT_ALGORITHM", "--sort-key-v2",
                           "PINNED",      "SPINE",         "OMP_PROC_BIND", "PIN_MEMORY",
                           "I_MPI_PIN",   "-pin",          "--pin-memory",  "JOB_ID",
                           "session",     "encompass",     "--cpu-pin",     "OLDPWD",
                           "--job-id"}) {
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

TEST(Secrets, InUrlsThatWereMadePathsAreThePasswords) {
  EXPECT_EQ(MaskText("cannot run '/w/https:/ann:hunter2@h/x.py'"),
            "cannot run '/w/https:/ann:(secret)@h/x.py'");
  EXPECT_EQ(MaskUrls("cannot run '/w/https:/ann:hunter2@h/x.py', nor https://b:c@d; set TOKEN=x"),
            "cannot run '/w/https:/ann:(secret)@h/x.py', nor https://b:(secret)@d; set TOKEN=x");
  for (const char* harmless : {"h:/srv/a@b", "scp h:/a", "file:/a:b", "ssh://git@github.com/x"}) {
    EXPECT_EQ(MaskText(harmless), harmless);
    EXPECT_EQ(MaskUrls(harmless), harmless);
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
  EXPECT_THAT(MaskArguments({"sh", "-c", "x", "--pin", "S1", "--my-pin=S2", "--pgpass", "S3", "--session-id",
                             "S4", "DBPWD=S5", "--dbpwd", "S6"}),
              ElementsAre("sh", "-c", "x", "--pin", "(secret)", "--my-pin=(secret)", "--pgpass", "(secret)",
                          "--session-id", "(secret)", "DBPWD=(secret)", "--dbpwd", "(secret)"));
  EXPECT_EQ(MaskText("x --pin S1 --my-pin=S2; DBPWD=S5 y --session-id S4"),
            "x --pin (secret) --my-pin=(secret); DBPWD=(secret) y --session-id (secret)");
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

struct Example {
  const char* text;
  const char* shown;
};

void ExpectShown(std::initializer_list<Example> examples) {
  for (const Example& one : examples) EXPECT_EQ(MaskText(one.text), one.shown);
}
void ExpectUnchanged(std::initializer_list<const char*> texts) {
  for (const char* text : texts) EXPECT_EQ(MaskText(text), text);
}

TEST(Secrets, StandInConnectionStrings) {
  ExpectShown({
      {"Server=db;Uid=ann;Pwd=hunter2;Port=1", "Server=db;Uid=ann;Pwd=(secret);Port=1"},
      {"DRIVER={x y};UID=ann;PWD={a;b};X=1", "DRIVER={x y};UID=ann;PWD=(secret);X=1"},
      {"UID=ann;PWD=/hunter2", "UID=ann;PWD=(secret)"},
      {"pwd=hunter2", "pwd=(secret)"},
      {"--pwd hunter2", "--pwd (secret)"},
      {"Data Source=x; User ID=sa; Password = hunter2; Y=1",
       "Data Source=x; User ID=sa; Password = (secret); Y=1"},
      {"AccountName=a;AccountKey=abc+/==;EndpointSuffix=x",
       "AccountName=a;AccountKey=(secret);EndpointSuffix=x"},
      {"SharedAccessKeyName=Root;SharedAccessKey=abc=", "SharedAccessKeyName=Root;SharedAccessKey=(secret)"},
  });
  ExpectUnchanged({"PWD=/home/ann", "PWD=$PWD x", "OLDPWD=/tmp", "sh: pwd: not found", "--pwd /work",
                   "pwd=./x", "cd x && pwd", "pwd"});
  EXPECT_EQ(MaskValue("PWD", "/home/ann"), "/home/ann");
  EXPECT_EQ(MaskValue("pwd", "hunter2"), "(secret)");
  EXPECT_THAT(MaskArguments({"x", "--pw", "hunter2", "--pwd", "hunter3", "--pwd", "/work"}),
              ElementsAre("x", "--pw", "(secret)", "--pwd", "(secret)", "--pwd", "/work"));
}

TEST(Secrets, SignAddresses) {
  ExpectShown({
      {"https://a.blob.core.windows.net/c?sv=2022-11-02&sig=ab%2Bcdefghijklmnop%3D&se=1",
       "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=(secret)&se=1"},
      {"SharedAccessSignature=sv=2022&sig=abcdefghijklmnopqr", "SharedAccessSignature=sv=2022&sig=(secret)"},
      {"https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature=0123456789abcdef0123",
       "https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature=(secret)"},
      {"https://h/x?Signature=0123456789abcdefgh", "https://h/x?Signature=(secret)"},
  });
  ExpectUnchanged({"sig=9", "kill -s 9 sig=abcdefghijklmnopqrstu", "--signature=abcdefghijklmnopqrstuv",
                   "https://h/?sig=1", "--config=abcdefghijklmnopqrstu"});
}

TEST(Secrets, StandInFiles) {
  ExpectShown({
      {"secret = \"a b\"", "secret = \"(secret)\""},
      {"[db]\npassword = 'hunter2'\nport = 1\n", "[db]\npassword = '(secret)'\nport = 1\n"},
      {"[default]\naws_secret_access_key = abc+/def ghi\nregion = eu\n",
       "[default]\naws_secret_access_key = (secret)\nregion = eu\n"},
      {"x = { token = \"abc\", n = 1 }", "x = { token = \"(secret)\", n = 1 }"},
      {"password = \"\"\"a\nb\"\"\"\nn = 1", "password = \"\"\"(secret)\"\"\"\nn = 1"},
      {"secrets = [\"a\", \"b\"]\nn = 1", "secrets = (secret)\nn = 1"},
      {R"-({"secrets": ["a", "b"], "n": 1})-", R"-({"secrets": (secret), "n": 1})-"},
      {R"-({"password": "a\"b\\", "n": 1})-", R"-({"password": "(secret)", "n": 1})-"},
      {R"-("{\"apiKey\": \"abc\", \"n\": 1}")-", R"-("{\"apiKey\": \"(secret)\", \"n\": 1}")-"},
      {"key = \"abc\"", "key = \"(secret)\""},
      {"password => 'x'", "password => '(secret)'"},
      {"password := \"x\"", "password := \"(secret)\""},
      {"password: hunter2\nn: 1", "password: (secret)\nn: 1"},
  });
  ExpectUnchanged({"sorted(x, key = len)", "if token == 'a'", "PASSWORD= python train.py", "secret",
                   "secret =", "the token is 5", "tokens = 512", "--sort-key = 3", "max_tokens = [1, 2]",
                   "a - token"});
}

TEST(Secrets, StandInHeaders) {
  ExpectShown({
      {"Authorization: Bearer abc", "Authorization: (secret)"},
      {"Authorization: token abc", "Authorization: (secret)"},
      {"Proxy-Authorization: Basic YW5uOmh1bnRlcjI= x", "Proxy-Authorization: (secret) x"},
      {"-H 'Basic YW5uOmh1bnRlcjI='", "-H 'Basic (secret)'"},
      {"Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature=c\nHost: x",
       "Authorization: (secret)\nHost: x"},
      {"curl -H 'Cookie: a=b; c=d' x", "curl -H 'Cookie: (secret)' x"},
      {"X-Api-Key: abc", "X-Api-Key: (secret)"},
      {"X-Auth-Token: abc", "X-Auth-Token: (secret)"},
  });
  ExpectUnchanged(
      {"Basic training", "basic configuration", "Content-Type: text/plain", "Basic YW5uaGlsYXRl"});
}

TEST(Secrets, AreAddressesOfWebhooks) {
  ExpectShown({
      {"https://hooks.slack.com/services/T012/B345/abcDEF", "https://hooks.slack.com/services/(secret)"},
      {"(hooks.slack.com/services/T012/B345/abcDEF)", "(hooks.slack.com/services/(secret))"},
      {"https://discord.com/api/webhooks/123/abc-DEF_g x", "https://discord.com/api/webhooks/(secret) x"},
      {"https://ann.webhook.office.com/webhookb2/0a1b-2c3d@4e5f/x",
       "https://ann.webhook.office.com/webhookb2/(secret)"},
      {"https://api.telegram.org/bot123:AbC/sendMessage?x=1", "https://api.telegram.org/bot(secret)?x=1"},
  });
  ExpectUnchanged({"https://hooks.slack.com/services/", "https://api.telegram.org/bots",
                   "https://api.slack.com/services/T0/B1/x1234"});
}

TEST(Secrets, HaveShapesOfOtherIssuersToo) {
  const std::string tail = "0123456789abcdefghijABCDEFGHIJklmnop";
  for (const std::string prefix :
       {"gho_", "ghs_", "glptt-", "glrt-", "xoxp-", "xoxe.xoxp-1-", "xapp-1-", "sk_live_", "whsec_",
        "GOCSPX-", "npm_", "pypi-", "dckr_pat_", "hvs.", "gsk_", "xai-", "SG."}) {
    EXPECT_EQ(MaskText("a=" + prefix + tail), "a=(secret)") << prefix;
  }
  EXPECT_EQ(MaskValue("AZURE_DEVOPS_EXT_PAT", tail), "(secret)");
  EXPECT_EQ(MaskValue("FILE_PAT", "*.txt"), "*.txt");
  ExpectUnchanged({"xai-grok", "pypi-mirror", "npm_config_registry", "hvs.x", "sg.example.org"});
}

TEST(Secrets, FollowOtherOptionsThatDoNotSaySo) {
  ExpectShown({
      {"docker login -u ann -p hunter2 h", "docker login -u ann -p (secret) h"},
      {"plink -pw hunter2 h", "plink -pw (secret) h"},
      {"mongodump -p hunter2", "mongodump -p (secret)"},
      {"train -password hunter2", "train -password (secret)"},
      {"unzip -P hunter2 a.zip", "unzip -P (secret) a.zip"},
      {"7z x -phunter2 a.7z", "7z x -p(secret) a.7z"},
      {"rar a -hphunter2 a.rar", "rar a -hp(secret) a.rar"},
      {"ssh-keygen -q -N hunter2 -f key", "ssh-keygen -q -N (secret) -f key"},
      {"http -a ann:hunter2 h/x", "http -a ann:(secret) h/x"},
      {"vault login hunter2", "vault login (secret)"},
      {"vault login -no-print hunter2 && x", "vault login -no-print (secret) && x"},
      {"aws configure set aws_secret_access_key hunter2", "aws configure set aws_secret_access_key (secret)"},
      {"aws configure set profile.x.aws_session_token hunter2 --y z",
       "aws configure set profile.x.aws_session_token (secret) --y z"},
      {"npm config set //registry.npmjs.org/:_authToken hunter2",
       "npm config set //registry.npmjs.org/:_authToken (secret)"},
  });
  EXPECT_THAT(MaskArguments({"aws", "configure", "set", "aws_secret_access_key", "hunter2"}),
              ElementsAre("aws", "configure", "set", "aws_secret_access_key", "(secret)"));
  EXPECT_THAT(MaskArguments({"vault", "login", "hunter2"}), ElementsAre("vault", "login", "(secret)"));
  ExpectUnchanged({"aws configure set region eu-west-1", "aws s3 cp secret.txt s3://b/secret.txt",
                   "vault login -method=oidc role=x", "vault login; ls a", "docker login h",
                   "unzip a.zip -d b", "ssh-keygen -t ed25519 -f key", "http -a", "gmx mdrun -pin on"});
  ExpectUnchanged({"docker run -p 80:80 x", "ssh -p 22 h", "mkdir -p secret", "non-secret value"});
}

// Thousands of names, quotes and token prefixes: time must not grow quadratically.
TEST(Secrets, AreSoughtInLongTextsInLittleTime) {
  for (const std::string part : {"a.", "token.", "eyJ-", "\"", "x=[", "password \"", "://", "a:b@"}) {
    std::string text;
    while (text.size() < (128 << 10)) text += part;
    EXPECT_FALSE(MaskText(text).empty());
  }
}

}  // namespace
}  // namespace dtrun
