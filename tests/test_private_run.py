"""What a run leaves behind is its user's alone, and has no secret in it that can be known for one."""

import json
import os
import re
import stat
import subprocess
import sys
import unittest

from support.job import JobTest, main, until

SECRETS = {
    "by its name": ("job.env.GITHUB_TOKEN", "hunter2-by-name"),
    "a password in a URL": ("job.env.DATABASE_URL", "postgres://ann:hunter2-in-url@db/x"),
    "a key in a DSN": ("job.env.SENTRY_DSN", "https://hunter2dsnkey@o1.ingest.sentry.io/1"),
    "an access key": ("job.env.CLOUD_ID", "AKIAHUNTER2EXAMPLE77"),
    "a token with a known beginning": ("job.env.MODEL_HUB", "hf_hunter2hunter2hunter2hunter2"),
    "a JSON web token": ("job.env.TICKET", "eyJhbGciOiJodW50ZXIyIn0.eyJzdWIiOiJodW50ZXIyIn0.hunter2hunter2"),
    "a connection string": ("job.env.ODBC", "Server=db;Uid=ann;Pwd=hunter2-pwd;Port=1"),
    "a signed address": ("job.env.SAS", "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=hunter2sighunter2sig%3D"),
    "a webhook": ("job.env.TELL", "https://hooks.slack.com/services/T012/B345/hunter2hook"),
    "a line of a file": ("job.env.INI", '[db]\nsecret = "hunter2-line"'),
    "a private key": ("job.env.PEM", "-----BEGIN PRIVATE KEY-----\nhunter2pem\n-----END PRIVATE KEY-----"),
}
ARGUMENTS = ["--api-key=hunter2-argument", "--token", "hunter2-word", "--url", "redis://:hunter2-redis@cache", "--pw", "hunter2-pw"]
# The ranks get what was meant for them.
CHECK = ("import os, sys; v = sys.argv; assert v[1] == '--api-key=hunter2-' + 'argument' and v[3] == 'hunter2-' + 'word', v; "
         "assert os.environ['GITHUB_TOKEN'] == 'hunter2-' + 'by-name'; "
         "assert 'hunter2-' + 'in-url' in os.environ['DATABASE_URL']; assert 'hunter2' + 'pem' in os.environ['PEM']; print('fine')")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class PipesInPlaceOfLogs(JobTest):
    def test_are_not_waited_for(self):
        result = self.ranks(1, "sh", "-c", "rm $DTRUN_RUN_DIR/rank-0.err; mkfifo $DTRUN_RUN_DIR/rank-0.err; exit 5")
        self.assertEqual(result.code, 5, str(result))
        self.assertIn("taken its place", result.err)
        self.assert_verdict(result, ending=(0, 5))


class Secrets(JobTest):
    def sets(self):
        return [word for key, value in SECRETS.values() for word in ("--set", f"{key}={value}")]

    def test_stand_in_no_record(self):
        job = self.start("--set", "job.processes_per_host=2", *self.sets(), "--", "python3", "-c", CHECK, *ARGUMENTS)
        result = job.finish()
        self.assert_ok(result)
        self.assertEqual(job.log(1), "fine\n")
        texts = {file.name: file.read_text(errors="replace") for file in job.run_dir().rglob("*") if file.is_file()}
        self.assertIn("plan.json", texts)
        self.assertIn("config.json", texts)
        texts.update({"stdout": result.out, "stderr": result.err})
        for what in ((), ("--json",)):
            texts[f"explain {what}"] = self.dtrun("explain", job.run_dir(), *what).out
            # The program itself holds halves of the secrets; its text is an argument too.
            plan = self.dtrun("plan", *what, "--set", "job.processes_per_host=2", *self.sets(), "--", "true", *ARGUMENTS)
            self.assert_ok(plan)
            texts[f"plan {what}"] = plan.out
        for name, text in texts.items():
            for secret in ("hunter2-by-name", "hunter2-in-url", "hunter2dsnkey", "AKIAHUNTER2", "hf_hunter2", "hunter2hunter2",
                           "hunter2pem", "hunter2-argument", "hunter2-word", "hunter2-redis", "hunter2-pw", "hunter2sig",
                           "hunter2hook", "hunter2-line"):
                self.assertNotIn(secret, text, name)
        self.assertEqual(json.loads(texts["plan ('--json',)"])["processes"][0]["env"]["DATABASE_URL"],
                         "postgres://ann:(secret)@db/x")

    def test_stand_in_no_complaint(self):
        for key, value in SECRETS.values():
            result = self.dtrun("--set", f"{key}={value}", "--set", "backend.name=none such", "--", "true")
            self.assert_user_error(result)
            self.assertNotIn("hunter2", result.err)

    def test_of_the_environment_are_masked(self):
        job = self.start("--", "true", env=self.environment(DATABASE_URL="mysql://a:hunter2@b", MY_PASSWORD="hunter2", PLAIN="kept"))
        self.assert_ok(job.finish())
        recorded = json.loads((job.run_dir() / "environment.json").read_text())
        self.assertEqual((recorded["DATABASE_URL"], recorded["MY_PASSWORD"], recorded["PLAIN"]),
                         ("mysql://a:(secret)@b", "(secret)", "kept"))


class Modes(JobTest):
    def run_with(self, umask, *sets):
        job = self.start(*[word for item in sets for word in ("--set", item)], "--", "sh", "-c", "echo x; exit 3", umask=umask)
        self.assertEqual(job.finish().code, 3)
        return job.run_dir()

    def expect(self, run_dir, folder, file):
        self.assertEqual(oct(mode(run_dir)), oct(folder))
        for path in run_dir.iterdir():
            wanted = folder if path.is_dir() else file
            self.assertEqual(oct(mode(path)), oct(wanted), path)

    def test_are_the_users_alone_whatever_the_umask(self):
        for umask in (0, 0o022, 0o077):
            run_dir = self.run_with(umask, "restart.max=1")
            self.assertTrue((run_dir / "generation-1").is_dir())
            self.expect(run_dir, 0o700, 0o600)

    def test_can_be_shared(self):
        for text, folder, file in (("group", 0o750, 0o640), ("all", 0o755, 0o644), ("0770", 0o770, 0o660), ("0711", 0o711, 0o600)):
            self.expect(self.run_with(0o077, f'logs.mode="{text}"'), folder, file)

    def test_that_make_no_sense_are_refused(self):
        for text in ("public", "0070", "1777", "07000", ""):
            self.assert_user_error(self.dtrun("--set", f'logs.mode="{text}"', "--", "true"), "logs.mode", '"group"')


@unittest.skipUnless(os.geteuid() == 0, "only root can make a small disk")
class FullDisk(JobTest):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", self.disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def test_as_runtime_folder_loses_nothing_of_what_a_slow_reader_gets(self):
        self.disk.chmod(0o700)
        lines = 250_000  # of 100 bytes: more than waits in memory
        script = self.write("import sys\nfor i in range(%d): sys.stdout.write(f'{i:098}\\n')\nsys.stdout.flush()\n"
                            "open('up', 'w').close()\n" % lines, "chatty.py")
        job = self.start("--set", f"logs.dir={self.folder}/logs", "--", sys.executable, script,
                         env=self.environment(XDG_RUNTIME_DIR=str(self.disk)))
        until((self.folder / "up").exists, "the end of the output")  # nothing of it has been read
        result = job.finish()
        self.assert_ok(result)
        shown = [int(number) for number in re.findall(r"\b(\d{98})$", result.out, re.MULTILINE)]
        self.assertEqual(len(shown), lines, result.err)
        self.assertEqual(shown, list(range(lines)))
        self.assertNotIn("not shown", result.err)

    def test_leaves_the_rank_its_code_and_no_empty_verdict(self):
        fill = "import sys, time; sys.stdout.write('x' * 99 + chr(10)); sys.stdout.write('y' * 300000 + chr(10)); print('last'); sys.stdout.flush(); time.sleep(1.2); sys.exit(7)"
        result = self.dtrun("--set", f"logs.dir={self.disk}/run", "--set", "restart.max=2", "--", "python3", "-c", fill)
        self.assertEqual(result.code, 7, str(result))
        self.assertIn("no space", result.err)
        self.assertIn("not restarted: ", result.err)
        self.assertEqual(result.err.count("is started again"), 1, result.err)
        self.assertEqual(result.err.count("failed after"), 2, result.err)  # the last says why it was not
        self.assertNotIn("all of it", result.err)
        self.assertIn("the beginning", result.err)
        verdict = self.disk / "run" / "verdict.json"
        if verdict.exists():
            json.loads(verdict.read_text())


if __name__ == "__main__":
    main()
