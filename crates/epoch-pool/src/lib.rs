//! A persistent fork-join pool for jobs of a few microseconds: the caller works too, nobody waits for a thread that has not started
