"""Events larger than memory: laid out by user in shards, which training maps into memory."""
