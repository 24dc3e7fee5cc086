"""Runs the commands of a page of the documentation.

A fence "```LANG file=NAME" is written to NAME; each line of a fence "```sh run" is run in
the same folder and must succeed, or exit with N where the fence says "fails=N".
"""

import re
import subprocess

from support.job import DTRUN, SOURCE

FENCE = re.compile(r"^```(?P<info>[^\n]+)\n(?P<body>.*?)^```$", re.M | re.S)


def run_page(test, page, **more):
    """Runs the commands of `page` for a JobTest, with `more` in their environment."""
    ran = 0
    for fence in FENCE.finditer((SOURCE / page).read_text()):
        words = dict(word.partition("=")[::2] for word in fence["info"].split())
        if "file" in words:
            test.write(fence["body"], words["file"])
        elif "run" in words:
            for command in fence["body"].strip().splitlines():
                _run(test, page, command, int(words.get("fails", 0)), more)
                ran += 1
    test.assertGreater(ran, 0, f"{page} has no command to run")


def _run(test, page, command, code, more):
    environment = test.environment(**more)
    environment["PATH"] = f"{DTRUN.parent}:{environment['PATH']}"
    done = subprocess.run(["bash", "-c", command], cwd=test.folder, env=environment, capture_output=True,
                          text=True, timeout=120)
    test.assertEqual(done.returncode, code, f"{page}: {command}\n{done.stdout}\n{done.stderr}")
