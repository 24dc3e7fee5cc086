// Nothing: a library whose name is that of the real UCX, so that fake UCX depends on it.
