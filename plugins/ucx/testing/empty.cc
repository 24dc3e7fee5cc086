// Nothing: a library with the name of the real UCX, so that fake UCX depends on it.
