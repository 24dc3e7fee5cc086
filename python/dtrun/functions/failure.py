"""The exception of a failed job."""

from __future__ import annotations

from typing import Sequence

from ..errors import Error


class JobFailed(Error):
    """A job of dtrun.run failed.

    `exit_code`: dtrun's; 2 where the job could not start, 0 where a function did not return and its rank ended well
    `verdict`: verdict.json of the run, a dict; None where the job ended before its ranks ran
    `rank`: the rank that failed first, or None
    `traceback`: the text of that rank's exception, or None where it died without one
    """

    id = "job.failed"

    def __init__(self, message: str, exit_code: int, verdict: dict | None = None, rank: int | None = None,
                 traceback: str | None = None) -> None:  # fmt: skip
        super().__init__(message, rank)
        self.exit_code, self.verdict, self.rank, self.traceback = exit_code, verdict, rank, traceback

    def __reduce__(self) -> tuple:
        return JobFailed, (str(self), self.exit_code, self.verdict, self.rank, self.traceback)


def unreturned(what: str, ranks: Sequence[int], verdict: dict | None = None) -> JobFailed:
    """The text for ranks that exited with 0 without a result; None would be a result."""
    who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    return JobFailed(
        f"{what}: {who} ended with exit code 0 and without a result: the function called sys.exit() or os._exit() there; let it "
        "return on every rank", 0, verdict, ranks[0],
    )  # fmt: skip


def failed(exit_code: int, verdict: dict | None, traceback: str | None, printed: str, why: str = "") -> JobFailed:
    """The exception: the verdict's first line, then the cause as far as it is known.

    why: the message of the platform that started the tasks
    """
    if verdict is None:
        return JobFailed(f"dtrun ended with exit code {exit_code} before the ranks ran:\n{printed.strip()}\n{why}".rstrip(), exit_code)
    # The verdict of an agent that was killed has neither.
    rank, text = verdict.get("first_failed_rank"), (verdict.get("text") or printed).strip()
    if traceback:
        text = f"{text.splitlines()[0]}\n\nRank {rank}:\n{traceback.rstrip()}"
    return JobFailed(f"{text}\n{why}" if why else text, exit_code, verdict, rank, traceback)
