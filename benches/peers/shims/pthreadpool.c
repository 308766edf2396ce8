// pthreadpool's loop over tiles, with our callback's ranges in place of its starts and lengths.

#include <pthreadpool.h>

struct job {
    void (*call)(const void *, size_t, size_t);
    const void *context;
};

static void run_tile(void *argument, size_t start, size_t length) {
    const struct job *job = argument;
    job->call(job->context, start, start + length);
}

// Null if there is no memory for the pool, or no thread.
void *peer_pthreadpool_new(size_t n_threads) { return pthreadpool_create(n_threads); }

void peer_pthreadpool_free(void *pool) { pthreadpool_destroy(pool); }

size_t peer_pthreadpool_threads(void *pool) { return pthreadpool_get_threads_count(pool); }

// Calls `call(context, start, end)` over ranges of up to `tile` units that partition `0..n_units`.
void peer_pthreadpool_for(void *pool, size_t n_units, size_t tile, void (*call)(const void *, size_t, size_t),
                          const void *context) {
    struct job job = {call, context};
    pthreadpool_parallelize_1d_tile_1d(pool, run_tile, &job, n_units, tile, 0);
}

#ifdef PEER_PROBE
int main(void) { return 0; }
#endif
