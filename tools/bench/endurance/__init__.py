"""Parts of tools/bench/soak.py: where jobs run, the faults, and the checks afterwards."""
