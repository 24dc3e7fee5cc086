"""dtrun bench: its table, its files, and its errors. Small and quick; figures are not judged."""

import json
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from support.job import BUILD, PATIENCE_S, JobTest, main, nightly, until

QUICK = ["--rounds", "2", "--seconds", "0.2", "--warmup", "1"]
ALONE = [*QUICK, "--peers", "none"]
OPERATIONS = ["allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "sendrecv"]


class Bench(JobTest):
    def bench(self, *arguments):
        return self.dtrun("bench", *arguments)

    def rows(self, result):
        """(bytes, layer) of every row of the table."""
        lines = result.out.splitlines()
        head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["bytes", "layer"])
        return [(line.split()[0], line[12:30].strip()) for line in lines[head + 1:]]


class Results(Bench):
    def test_table_json_and_drawing_have_the_same_rows(self):
        result = self.bench("allreduce", "--sizes", "8:1K", "--factor", "8", "--buffers", "both", *ALONE,
                            "--json", "out.json", "--plot", "out.svg")
        self.assert_ok(result)
        layers = ["memcpy", "shm", "shm registered", "gloo", "gloo registered"]
        self.assertEqual(self.rows(result), [(size, layer) for size in ("8", "64", "512") for layer in layers])
        for word in ("cores", "kernel", "load", "allreduce of float32, 2 ranks, 2 rounds"):
            self.assertIn(word, result.out)
        report = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(report["schema"], 1)
        self.assertRegex(result.err, r"dtrun: bench: .*out\.json\ndtrun: bench: .*out\.svg\n")
        self.assertEqual([(row["bytes"], row["layer"]) for row in report["results"]],
                         [(size, layer) for size in (8, 64, 512) for layer in layers])
        self.assertEqual(report["wrong"], [])
        for row in report["results"]:
            self.assertGreater(row["min_us"], 0)
            self.assertLessEqual(row["min_us"], row["median_us"])
            self.assertLessEqual(row["median_us"], row["p99_us"])
            self.assertAlmostEqual(row["algbw_gb_s"], row["bytes"] / row["median_us"] / 1e3, places=6)
            self.assertEqual(row["busbw_gb_s"], row["algbw_gb_s"])  # 2(n-1)/n is 1
        copies = {row["bytes"]: row["algbw_gb_s"] for row in report["results"] if row["layer"] == "memcpy"}
        for row in report["results"]:
            self.assertAlmostEqual(row["efficiency"], row["algbw_gb_s"] / copies[row["bytes"]], places=6)
        drawing = ElementTree.parse(self.folder / "out.svg")
        curves = drawing.findall(".//{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(curves), 2 * len(layers))

    def test_every_operation_is_right_on_three_ranks(self):
        for operation in OPERATIONS:
            result = self.bench(operation, "--np", "3", "--sizes", "4,12K", "--dtype", "int32", *ALONE)
            self.assert_ok(result)
            self.assertEqual({layer for _, layer in self.rows(result)}, {"memcpy", "shm", "gloo"}, operation)

    def test_a_barrier_has_times_and_no_sizes(self):
        result = self.bench("barrier", *ALONE)
        self.assert_ok(result)
        self.assertEqual(self.rows(result), [("-", "shm"), ("-", "gloo")])

    def test_sixteen_bit_floats_are_right(self):
        for dtype in ("float16", "bfloat16"):
            self.assert_ok(self.bench("allreduce", "--sizes", "2,4K", "--dtype", dtype, *ALONE))

    def test_a_page_has_the_drawing_and_the_table(self):
        self.assert_ok(self.bench("broadcast", "--sizes", "1K", *ALONE, "--plot", "out.html"))
        page = (self.folder / "out.html").read_text()
        for word in ("<svg ", "median us", "shm", "</html>"):
            self.assertIn(word, page)

    def test_peers_are_measured_or_say_why_not(self):
        result = self.bench("allreduce", "--sizes", "8,64K", *QUICK)
        self.assert_ok(result)
        measured = {layer for _, layer in self.rows(result)}
        for peer in ("raw-gloo", "raw-mpi", "raw-ucx", "torch-gloo"):
            if f"  {peer:<18} skipped, because " not in result.out:
                self.assertIn(peer, measured, str(result))


    @nightly
    def test_ranks_of_mpi_are_a_column_beside_mpi_itself(self):
        result = self.bench("allreduce", "--sizes", "8,64K", *QUICK, "--backend", "mpi", "--local", "none",
                            "--peers", "raw-mpi", "--set", "mpi:backend.options.coll_sm=off")
        if "'mpi'" in result.err or "  mpi                skipped" in result.out:
            self.skipTest(result.out + result.err)  # no plugin, or no MPI that works here
        self.assert_ok(result)
        self.assertEqual({layer for _, layer in self.rows(result)}, {"memcpy", "mpi", "raw-mpi"})

    @nightly
    def test_every_layer_says_how_long_its_ranks_took_to_join(self):
        result = self.bench("barrier", *ALONE, "--json", "out.json")
        self.assert_ok(result)
        self.assertEqual(result.out.count("; joined in "), 2)
        for layer in json.loads((self.folder / "out.json").read_text())["layers"]:
            self.assertGreater(layer["joining_s"], 0)

    def test_a_layer_names_the_library_of_its_backend_however_much_its_ranks_print(self):
        described = self.dtrun("plugins", "describe", "gloo", "--json")
        library = json.loads(described.out)["here"]["library"]
        noisy = self.folder / "noisy"
        noisy.write_text('#!/bin/sh\nyes "  backend    none: of your business" | head -n 20000 >&2; exec "$@"\n')
        noisy.chmod(0o755)
        self.assert_ok(self.bench("barrier", "--local", "none", *ALONE, "--json", "out.json", "--wrap", noisy))
        layers = json.loads((self.folder / "out.json").read_text())["layers"]
        self.assertEqual([layer["description"].split(", ", 1)[1] for layer in layers], [library])

    def test_every_rank_is_wrapped_with_its_number(self):
        wrapper = self.folder / "wrapper"
        wrapper.write_text('#!/bin/sh\ntouch "$1.$DTRUN_BACKEND"; shift; exec "$@"\n')
        wrapper.chmod(0o755)
        self.assert_ok(self.bench("barrier", "--local", "none", *ALONE, "--wrap", f"{wrapper} seen-${{RANK}}"))
        self.assertEqual(sorted(path.name for path in self.folder.glob("seen-*")), ["seen-0.gloo", "seen-1.gloo"])

    def test_an_option_may_be_for_one_backend(self):
        result = self.bench("barrier", "--local", "shm,none", *ALONE, "--set", "gloo:backend.timeout=7s")
        self.assert_ok(result)


# Stands in for raw_gloo: rank 1 answers "check" and "run" as it is told.
PEER = """#!{python}
import os, socket, sys
answers = {answers}
rank = os.environ["DTRUN_RANK"]
connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
connection.connect(sys.argv[1])
lines = connection.makefile("rw")
def say(text):
    lines.write(text + chr(10))
    lines.flush()
say("hello " + rank + " 2 0.25 a stand-in")
for line in lines:
    verb, _, *numbers = line.split()
    if rank == "1" and verb in answers:
        if answers[verb] is None:
            sys.exit("bench: the stand-in is tired")
        say(answers[verb])
    else:
        say("times" + " 1000" * int(numbers[1]) if verb == "run" else "ok")
"""


class Peers(Bench):
    """An installation with a peer that misbehaves."""

    def bench_with(self, answers):
        for folder in ("bin", "lib/dtrun/bench"):
            (self.folder / folder).mkdir(parents=True)
        for program in ("dtrun", "dtrun-bench"):
            shutil.copy(BUILD / "bin" / program, self.folder / "bin")
        for name in ("libdtrun.so.1", "dtrun/plugins"):
            (self.folder / "lib" / name).symlink_to(BUILD / "lib" / name)
        peer = self.folder / "lib/dtrun/bench/raw_gloo"
        peer.write_text(PEER.format(python=sys.executable, answers=repr(answers)))
        peer.chmod(0o755)
        command = [self.folder / "bin/dtrun", "bench", "allreduce", "--sizes", "8,64", *QUICK, "--peers", "raw-gloo",
                   "--json", "out.json"]
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=PATIENCE_S)
        report = json.loads((self.folder / "out.json").read_text())
        self.assertEqual(len([row for row in report["results"] if row["layer"] == "shm"]), 2, done.stderr)
        return done, report

    def test_one_that_behaves_has_rows(self):
        done, report = self.bench_with({})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row["median_us"] for row in report["results"] if row["layer"] == "raw-gloo"}, {1.0})

    def test_a_wrong_result_is_named_and_makes_the_run_fail(self):
        done, report = self.bench_with({"check": "wrong rank 1: element 0 is 7, expected 6"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("wrong result: raw-gloo, 8: rank 1: element 0 is 7, expected 6", done.stderr)
        self.assertEqual(report["wrong"], ["raw-gloo, 8: rank 1: element 0 is 7, expected 6"])
        self.assertNotIn("raw-gloo", [row["layer"] for row in report["results"]])

    def test_what_a_peer_lacks_is_no_failure(self):
        done, _ = self.bench_with({"check": "unsupported it has no sum"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("raw-gloo", done.stderr)
        self.golden_lines(done.stderr, "raw-gloo")

    def test_a_peer_that_dies_midway_is_left_out_from_there(self):
        done, report = self.bench_with({"run": None})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the stand-in is tired", done.stderr)
        self.assertNotIn("raw-gloo", [row["layer"] for row in report["results"]])


class Errors(Bench):
    def test_mistakes_are_named_in_one_line(self):
        for arguments, *texts in [
            (["allredcue"], "'allredcue'", "did you mean 'allreduce'"),
            (["allreduce", "--dtype", "float31"], "'float31'", "float32"),
            (["allreduce", "--backend", "golo"], "'golo'", "did you mean 'gloo'"),
            (["allreduce", "--local", "both"], "'both'", "shm,none"),
            (["allreduce", "--peers", "raw-gluu"], "'raw-gluu'", "raw-gloo"),
            (["allreduce", "--buffers", "some"], "'some'", "registered"),
            (["allreduce", "--set", "golo:comm.local=shm"], "'golo'", "--backend gloo"),
            (["allreduce", "--mpirun", " "], "--mpirun", "a command"),
            (["allreduce", "--sizes", "64M:8"], "'64M:8'", "smaller one first"),
            (["allreduce", "--sizes", "8:x"], "'8:x'"),
            (["allreduce", "--factor", "1"], "factor 1"),
            (["allreduce", "--np", "0"], "--np 0", "1 to 4096"),
            (["sendrecv", "--np", "1"], "--np 2"),
            (["allreduce", "--json", "/nowhere/out.json"], "'/nowhere/out.json'", "no such file or directory"),
            (["allreduce", "--plot", "out.png"], "'out.png'", ".svg or .html"),
            (["allreduce", "--sizes", "900G"], "do not fit", "smaller --sizes"),
        ]:
            result = self.bench(*arguments)
            self.assert_user_error(result, *texts)
            lines = [line for line in result.err.splitlines() if "warning: the load" not in line]
            self.assertEqual(len(lines), 1, str(result))
            self.assertEqual(result.out, "", str(result))

    def test_a_terminal_obeys_nothing_of_a_message(self):
        for option in (None, "--backend", "--dtype", "--peers", "--local", "--sizes", "--plot", "--json"):
            with self.subTest(option=option):
                result = self.bench(*(["allreduce", option] if option else []), "/nowhere/\x1b[2Jx")
                self.assert_user_error(result, "\\u001b[2Jx")
                self.assertNotIn("\x1b", result.err)

    def test_a_backend_that_cannot_start_is_left_out_with_its_reason(self):
        result = self.bench("allreduce", "--sizes", "8", "--local", "none", "--set",
                            "backend.options.interface=nosuch0", *ALONE)
        self.assertEqual(result.code, 1, str(result))
        self.assertIn("gloo               skipped, because ", result.out)
        self.assertIn("nosuch0", result.out)
        self.golden_lines(result.err, "dtrun: bench: ", "measured")


class Interrupts(Bench):
    def test_an_interrupt_ends_everything_at_once(self):
        job = self.start("bench", "allreduce", "--sizes", "8:1M", "--seconds", "600", "--json", "out.json", "--peers", "raw-ucx")
        output = job.process.stdout
        until(lambda: "layer" in output.readline(), "the head of the table")
        job.signal(signal.SIGINT)
        self.assertEqual(job.finish().code, 128 + signal.SIGINT)
        self.assertFalse((self.folder / "out.json").exists())
        # tearDown looks for survivors

    def test_a_kill_leaves_nothing_behind(self):
        job = self.start("bench", "allreduce", "--sizes", "8:1M", "--seconds", "600")
        output = job.process.stdout
        until(lambda: "layer" in output.readline(), "the head of the table")
        job.signal(signal.SIGKILL)
        job.finish()


if __name__ == "__main__":
    main()
