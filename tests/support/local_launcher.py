"""A local launcher of a user who has none: starts NPROC_PER_NODE ranks, each told its LOCAL_RANK."""

BY_SHELL = """
code=0
for local in $(seq 0 $((NPROC_PER_NODE - 1))); do LOCAL_RANK=$local "$0" "$@" & pids="$pids $!"; done
for pid in $pids; do wait $pid || code=$?; done
exit $code
"""
