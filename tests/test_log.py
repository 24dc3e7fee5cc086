"""The log: DTRUN_LOG, DTRUN_LOG_FORMAT, and dtrun.log in the run folder."""

import json
import os

from support.job import RANK, Job, JobTest, main

LINE = r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+ "


class Log(JobTest):
    def log(self):
        return (self.newest() / "dtrun.log").read_text()

    def newest(self):
        return Job(None, self.folder).run_dir()

    def test_info_is_shown_and_kept(self):
        result = self.ranks(2, "true", env=self.environment(DTRUN_LOG="info"))
        self.assert_ok(result)
        for text in r"info job: job '\w+': 2 ranks", r"info node: rank 1 is process \d+: /\S*true", "info node: rank 1 .* exited with code 0":
            self.assertRegex(result.err, LINE + text)
            self.assertRegex(self.log(), LINE + text)

    def test_unless_asked_for_there_is_none(self):
        self.assert_ok(self.ranks(2, "true"))
        self.assertFalse((self.newest() / "dtrun.log").exists())

    def test_a_level_for_each_part(self):
        result = self.ranks(2, "true", env=self.environment(DTRUN_LOG="off,node=debug"))
        self.assert_ok(result)
        self.assertRegex(result.err, LINE + "debug node: prepared: ")
        self.assertNotIn(" job: ", self.log())

    def test_ranks_log_too(self):
        result = self.ranks(2, RANK, env=self.environment(DTRUN_LOG="info"))
        self.assert_ok(result)
        for rank in range(2):
            self.assertRegex(result.err, rf"\[{rank}\] {LINE}rank {rank} info comm: .* '\w+', generation 0, .*rank {rank} of 2")

    def test_json(self):
        self.assert_ok(self.ranks(2, "true", env=self.environment(DTRUN_LOG="info", DTRUN_LOG_FORMAT="json")))
        lines = [json.loads(line) for line in self.log().splitlines()]
        self.assertEqual({line["level"] for line in lines}, {"info"})
        self.assertEqual({line["part"] for line in lines}, {"job", "node"})

    def test_wrong_values_are_told(self):
        for given, value in (({"DTRUN_LOG": "loud"}, "'loud'"), ({"DTRUN_LOG": "nod=info"}, "'nod'"), ({"DTRUN_LOG_FORMAT": "xml"}, "'xml'")):
            with self.subTest(given):
                result = self.ranks(1, "true", env=self.environment(**given))
                self.assert_ok(result)
                self.golden_lines(result.err, f"  warning    {next(iter(given))}", value)

    def test_the_file_is_new_and_of_the_mode_of_the_others(self):
        folder = self.folder / "r"
        folder.mkdir()
        (folder / "theirs").write_text("theirs")
        os.mkfifo(folder / "dtrun.1.log")
        (folder / "dtrun.log").symlink_to("theirs")
        for number in range(2):
            result = self.ranks(1, "true", sets=[f"logs.dir={folder}", "logs.mode=group"], env=self.environment(DTRUN_LOG="info"))
            self.assert_ok(result)
            self.assertEqual((folder / "theirs").read_text(), "theirs")
            self.assertEqual((folder / "dtrun.log").lstat().st_mode & 0o7777, 0o640, number)
            self.assertEqual((folder / "dtrun.log").read_text().count("generation 0: all hosts are ready"), 1, number)

    def test_secrets_in_commands_are_masked(self):
        self.assert_ok(self.ranks(1, "true", "--password", "hunter2", env=self.environment(DTRUN_LOG="info")))
        self.assertIn("--password (secret)", self.log())
        self.assertNotIn("hunter2", self.log())


if __name__ == "__main__":
    main()
