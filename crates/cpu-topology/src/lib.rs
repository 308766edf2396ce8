//! Which CPUs a process has, how they share cores, which are fast, and the pool plan that follows
