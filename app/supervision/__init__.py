"""Several workers behind one address: a process that starts, replaces and stops them."""
