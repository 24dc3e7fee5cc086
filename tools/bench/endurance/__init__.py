"""What tools/bench/soak.py is made of: where jobs run, what is done to them, what is counted afterwards."""
