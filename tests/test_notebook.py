"""dtrun.run in a notebook, executed by a real Jupyter kernel.

Runs where `tools/setup frameworks` has fetched nbclient, ipykernel and cloudpickle, into build/frameworks.
"""

import json
import subprocess

from support.job import SOURCE, main, skip
from support.python import PythonTest

PYTHON = SOURCE / "build/frameworks/bin/python3"
NOTEBOOK = """
import asyncio, json, sys
import nbclient, nbformat

# A kernel under way: an asterisk before a cell says that it is interrupted once it prints "waiting".
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in json.loads(sys.argv[1])])

class Client(nbclient.NotebookClient):
    def process_message(self, message, cell, index):
        if message["msg_type"] == "stream" and "waiting" in message["content"]["text"]:
            asyncio.ensure_future(self.km.interrupt_kernel())
        return super().process_message(message, cell, index)

Client(notebook, kernel_name="python3", allow_errors=True, timeout=100).execute()
for cell in notebook.cells:
    print(json.dumps(cell.outputs))
"""
KERNEL = {"argv": [str(PYTHON), "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python", "language": "python"}


class Notebook(PythonTest):
    def cells(self, *texts):
        """The outputs of each cell, by kind: what it printed, its result, its error."""
        kernel = self.folder / "jupyter/kernels/python3"
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(json.dumps(KERNEL))
        here = {"JUPYTER_PATH": str(self.folder / "jupyter"), "IPYTHONDIR": str(self.folder), "JUPYTER_RUNTIME_DIR": str(self.folder)}
        result = self.python(NOTEBOOK, json.dumps(texts), python=PYTHON, env=self.environment(**here))
        self.assert_ok(result)
        return [{"printed": "".join(one["text"] for one in outputs if one["output_type"] == "stream"),
                 "result": "".join(one["data"]["text/plain"] for one in outputs if one["output_type"] == "execute_result"),
                 "error": next((one["ename"] + ": " + one["evalue"] for one in outputs if one["output_type"] == "error"), None)}
                for outputs in map(json.loads, result.out.splitlines())]

    def test_functions_of_cells(self):
        define, run, fail, interrupt, after = self.cells(
            "import dtrun, os, time\nscale = 10\ndef train(x):\n    print('rank', os.environ['RANK'], flush=True)\n    return scale * x",
            "dtrun.run(train, [4], np=2)",
            "dtrun.run(lambda: {}['column'], np=2)",
            "def wait():\n    print('waiting', flush=True)\n    time.sleep(1000)\ndtrun.run(wait, np=2)",
            "dtrun.Distributor(2, use_gpu=False).run(train, 5)")
        self.assertEqual(define, {"printed": "", "result": "", "error": None})
        self.assertEqual(sorted(run["printed"].splitlines()), ["[0] rank 0", "[1] rank 1"])
        self.assertEqual((run["result"], run["error"]), ("[40, 40]", None))
        self.assertRegex(fail["error"], "JobFailed: .*'lambda'")
        self.assertIn("KeyError: 'column'", fail["error"])
        self.assertTrue(interrupt["error"].startswith("KeyboardInterrupt"), interrupt)
        self.assertEqual(after["result"], "50")  # the kernel goes on, and no rank is left


if __name__ == "__main__":
    needed = "import nbclient, ipykernel, cloudpickle"
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", needed], capture_output=True, check=False).returncode != 0:
        skip(f"{PYTHON} has no nbclient, ipykernel and cloudpickle: `tools/setup frameworks` fetches them from PyPI")
    main()
