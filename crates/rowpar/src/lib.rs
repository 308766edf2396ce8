//! Row-parallel matvec kernels, bit for bit the serial loop, on any pool
