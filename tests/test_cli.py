"""Help, versions, completion and plugin listings."""

import json
import re
import subprocess

from support.job import DTRUN, JobTest, main

VERBS = [[], ["run"], ["plan"], ["env"], ["config"], ["config", "check"], ["config", "explain"], ["plugins"],
         ["plugins", "list"], ["plugins", "describe"], ["completion"], ["completion", "bash"], ["bench"],
         ["explain"], ["doctor"]]


class Help(JobTest):
    def test_every_verb_has_help(self):
        for verb in VERBS:
            result = self.dtrun(*verb, "--help")
            self.assert_ok(result)
            self.assertIn("Usage", result.out)

    def test_version(self):
        result = self.dtrun("--version")
        self.assert_ok(result)
        self.assertRegex(result.out, r"^dtrun \d+\.\d+\.\d+\n$")

    def test_a_wrong_command_line_ends_with_2(self):
        for arguments in (["--no-such-flag"], ["plna"], ["config", "check"], ["plugins", "describe"]):
            self.assertEqual(self.dtrun(*arguments).code, 2, arguments)


    def test_an_agent_without_a_root_says_so_and_ends(self):
        with self.write("", "empty").open() as empty:
            for stdin in (subprocess.DEVNULL, subprocess.PIPE, empty):
                agent = subprocess.Popen([str(DTRUN), "agent"], stdin=stdin, stderr=subprocess.PIPE, text=True)
                _, text = agent.communicate("" if stdin == subprocess.PIPE else None, timeout=60)
                self.assertEqual(agent.returncode, 2, text)
                self.assertIn("`dtrun agent` is started by dtrun on another host", text)


class Plugins(JobTest):
    def test_list_shows_both_kinds(self):
        result = self.dtrun("plugins", "list")
        self.assert_ok(result)
        self.assertRegex(result.out, r"backend\s+gloo\s+\d")
        self.assertRegex(result.out, r"launcher\s+per[-_]process\s+\d")

    def test_list_as_json(self):
        rows = json.loads(self.dtrun("plugins", "list", "--json").out)
        self.assertEqual({row["state"] for row in rows}, {"ok"}, rows)

    def test_describe_prints_every_option(self):
        described = json.loads(self.dtrun("plugins", "describe", "gloo", "--json").out)
        text = self.dtrun("plugins", "describe", "gloo").out
        self.assertIn("library", described["here"])
        self.assertGreater(len(described["options"]), 0)
        for option in described["options"]:
            self.assertIn(option["key"], text)
            self.assertIn(option["doc"], text)

    def test_describe_of_nothing_lists_what_exists(self):
        result = self.dtrun("plugins", "describe", "golo")
        self.assert_user_error(result, "'golo'", "gloo")


class Explain(JobTest):
    def test_every_key_of_the_core_is_explained(self):
        keys = self.dtrun("completion", "keys").out.split()
        self.assertIn("job.command", keys)
        file = self.write('[job]\ncommand = ["true"]\n')
        for key in keys:
            result = self.dtrun("config", "explain", key, "--config", file)
            self.assert_ok(result)
            self.assertIn(key, result.out)

    def test_no_command_is_needed(self):
        for arguments in [], ["--set", "watch.stall=5m"], ["--config", self.write('[watch]\nstall = "5m"\n')]:
            result = self.dtrun("config", "explain", "watch.stall", *arguments)
            self.assert_ok(result)
            self.assertIn("watch.stall", result.out)
        self.assert_user_error(self.dtrun("config", "explain", "watch.stall", "--set", "job.nam=a"), "job.name")

    def test_an_unknown_key_has_a_nearest(self):
        file = self.write('[job]\ncommand = ["true"]\n')
        self.assert_user_error(self.dtrun("config", "explain", "job.comand", "--config", file), "job.command")


class Completion(JobTest):
    def complete(self, *words):
        script = (
            f'source <("{DTRUN}" completion bash); dtrun() {{ "{DTRUN}" "$@"; }}; compopt() {{ :; }}; '
            f"COMP_WORDS=(dtrun {' '.join(words)} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _dtrun; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_verbs_keys_and_plugins(self):
        self.assertIn("plan", self.complete())
        self.assertIn("backend.name=", self.complete("--set"))
        self.assertIn("gloo", self.complete("plugins", "describe"))
        self.assertIn("allreduce", self.complete("bench"))
        self.assertIn("--plot", self.complete("bench", "allreduce"))
        self.assertIn("registered", self.complete("bench", "allreduce", "--buffers"))
        self.assertEqual(self.complete("--", "x"), [])

    def test_config_files(self):
        self.write("", "a.toml"), self.write("", "a.txt")
        self.assertEqual([word for word in self.complete("--config") if re.match("a[.]", word)], ["a.toml"])


if __name__ == "__main__":
    main()
