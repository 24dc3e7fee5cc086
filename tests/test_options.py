"""The options as `dtrun config list` and `config explain` show them, and their page."""

import json
import re

from support.job import SOURCE, JobTest, main


class Explain(JobTest):
    def test_every_key_of_the_core_is_explained(self):
        keys = self.dtrun("completion", "keys").out.split()
        self.assertIn("job.command", keys)
        file = self.write('[job]\ncommand = ["true"]\n')
        for key in keys:
            result = self.dtrun("config", "explain", key, "--config", file)
            self.assert_ok(result)
            self.assertIn(key, result.out)

    def test_a_slip_in_a_table_leaves_the_option(self):
        result = self.dtrun("config", "explain", "backend.optoins.interface")
        self.golden_error(result, "'backend.options.interface'")

    def test_variables_of_others(self):
        for variable, option in (("NCCL_SOCKET_IFNAME", "network.interface"), ("MASTER_PORT", "job.master_port"),
                                 ("OMPI_MCA_btl_tcp_if_include", "network.interface"), ("RANK", "job.ranks")):
            result = self.dtrun("config", "explain", variable)
            self.assert_ok(result)
            self.golden_lines(result.out, f"{variable}: ")
            self.assertIn(f"\n{option}: ", result.out)
        for variable, text in (("NCCL_P2P_DISABLE", "backend.nccl.p2p: "), ("GLOO_SOCKET_IFNAME", "backend.gloo.interface: "),
                               ("UCX_TLS", "backend.ucx.transports: "), ("OMP_NUM_THREADS", "divided by its ranks"),
                               ("MY_OWN", "--set job.env.MY_OWN=VALUE")):
            self.assertIn(text, self.dtrun("config", "explain", variable).out)

    def test_no_command_is_needed(self):
        for arguments in [], ["--set", "watch.stall=5m"], ["--config", self.write('[watch]\nstall = "5m"\n')]:
            result = self.dtrun("config", "explain", "watch.stall", *arguments)
            self.assert_ok(result)
            self.assertIn("watch.stall", result.out)
        self.assert_user_error(self.dtrun("config", "explain", "watch.stall", "--set", "job.nam=a"), "job.name")

    def test_an_unknown_key_has_a_nearest(self):
        file = self.write('[job]\ncommand = ["true"]\n')
        self.assert_user_error(self.dtrun("config", "explain", "job.comand", "--config", file), "job.command")

    def test_options_of_plugins_are_explained_without_being_chosen(self):
        self.golden(self.dtrun("config", "explain", "launcher.options.max_restarts").out, "dtrun plugins describe torchrun")
        for arguments in ["backend.gloo"], ["backend.gloo.interface", "--set", "backend.name=none"]:
            explained = self.dtrun("config", "explain", *arguments)
            self.assert_ok(explained)
            self.assertIn("dtrun plugins describe gloo", explained.out)
            self.assertIn("  backend.gloo.interface\n", explained.out)
        chosen = self.dtrun("config", "explain", "backend.gloo.interface", "--set", "backend.name=gloo", "--set", "backend.gloo.interface=lo")
        self.assertIn("backend.options.interface: ", chosen.out)
        self.assertRegex(chosen.out, 'value +"lo"')
        listed = self.dtrun("config", "list", "backend.gloo.")
        self.assert_ok(listed)
        self.assertIn("  backend.gloo.interface\n", listed.out)
        self.assert_user_error(self.dtrun("config", "explain", "backend.gloo.nothing"), "unknown option")

    def test_a_name_of_other_launchers(self):
        self.golden_error(self.dtrun("config", "explain", "timeout"), "job.time_limit", "backend.timeout")


class ListOptions(JobTest):
    def test_values_are_whole_in_a_pipe(self):
        self.assertNotIn("...", "".join(line[:80] for line in self.dtrun("config", "list").out.splitlines(True)))
        shell = '["ssh", "-o", "BatchMode=yes", "-p", "2222"]'
        self.assertIn(shell, self.dtrun("config", "list", "cluster.remote", "--set", f"cluster.remote_shell={shell}").out)

    def test_every_option_of_the_core_has_a_line(self):
        result = self.dtrun("config", "list")
        self.assert_ok(result)
        for key in self.dtrun("completion", "keys").out.split():
            self.assertRegex(result.out, rf"(?m)^{re.escape(key)} ")
        self.assertIn("backend.options.interface", result.out)

    def test_a_prefix_and_the_values_of_a_job(self):
        file = self.write('[job]\ncommand = ["true"]\ngrace = "3s"\n')
        result = self.dtrun("config", "list", "job.", file, "--set", "job.bind=none")
        self.assert_ok(result)
        self.assertTrue(all(line.startswith("job.") for line in result.out.splitlines()), result.out)
        self.assertRegex(result.out, r'(?m)^job.grace +"3s" .*\(.*job.toml:3:9\)$')
        self.assertRegex(result.out, r'(?m)^job.bind +"none" .*\(--set job.bind\)$')
        unknown = self.dtrun("config", "list", "jbo")
        self.golden_error(unknown, "'jbo'", "'job'?")
        self.assertNotIn("unknown option", unknown.err)

    def test_json(self):
        rows = json.loads(self.dtrun("config", "list", "restart.", "--json").out)["options"]
        self.assertEqual({row["key"] for row in rows}, {"restart.max", "restart.backoff", "restart.on"})

    def test_json_has_values_and_origins(self):
        file = self.write('[job]\ncommand = ["true"]\ngrace = "3s"\nenv = { A = "1", DB_PASSWORD = "sekret1" }\nmemory = "16MiB"\n')
        result = self.dtrun("config", "list", "--config", file, "--set", "output.fold=true", "--json")
        rows = {row["key"]: row for row in json.loads(result.out)["options"]}
        self.assertEqual((rows["job.grace"]["value"], rows["job.grace"]["scope"]), ("3s", "job"))
        self.assertTrue(rows["job.grace"]["origin"].endswith("job.toml:3:9"), rows["job.grace"])
        self.assertEqual((rows["output.fold"]["value"], rows["output.fold"]["origin"]), (True, "--set output.fold"))
        self.assertEqual((rows["job.processes_per_host"]["value"], rows["job.processes_per_host"]["origin"]), (1, "default"))
        self.assertEqual(rows["job.env"]["value"], {"A": "1", "DB_PASSWORD": "(secret)"})
        self.assertEqual((rows["job.command"]["value"], rows["job.cwd"]["value"]), (["true"], None))
        self.assertEqual(rows["job.memory"]["value"], "16MiB")

    def test_json_elsewhere_names_the_verbs_that_have_it(self):
        self.assert_user_error(self.dtrun("config", "explain", "job.env", "--json"), "config list", "plugins list")

    def test_one_word_too_many(self):
        self.golden_error(self.dtrun("config", "check", "a.toml", "b.toml"), "'b.toml'", "'dtrun config check'")


class OptionsPage(JobTest):
    """docs/options.md is what dtrun prints."""

    def tables(self, text):
        return dict(re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", text))

    def test_the_page_is_up_to_date(self):
        printed = self.dtrun("config", "list", "--markdown")
        self.assert_ok(printed)
        page = (SOURCE / "docs" / "options.md").read_text()
        self.assertEqual(page.partition("\n## ")[0], printed.out.partition("\n## ")[0])
        kept, ours = self.tables(page), self.tables(printed.out)
        for title, table in ours.items():  # a plugin without its library has none
            self.assertEqual(kept.get(title, "").strip(), table.strip(),
                             f"{title}: run `dtrun config list --markdown > docs/options.md`")
        for key in self.dtrun("completion", "keys").out.split():
            self.assertIn(f"| `{key}` |", page)


if __name__ == "__main__":
    main()
