// A parallel for of OpenMP.

#include <omp.h>
#include <stddef.h>

// Calls `call(context, start, end)` over ranges that partition `0..n_units`: one unit each and the same for every thread if
// there are no more units than threads, else up to `tile` units for whoever is free.
void peer_libgomp_for(size_t n_units, size_t tile, int n_threads, void (*call)(const void *, size_t, size_t),
                      const void *context) {
    if (n_units <= (size_t)n_threads) {
#pragma omp parallel for num_threads(n_threads) schedule(static)
        for (size_t start = 0; start < n_units; start++) {
            call(context, start, start + 1);
        }
    } else {
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)
        for (size_t start = 0; start < n_units; start += tile) {
            call(context, start, n_units - start < tile ? n_units : start + tile);
        }
    }
}

// The threads that a parallel region really gets if it asks for `n_threads`.
int peer_libgomp_team(int n_threads) {
    int n_given = 0;
#pragma omp parallel num_threads(n_threads)
    {
#pragma omp single
        n_given = omp_get_num_threads();
    }
    return n_given;
}

#ifdef PEER_PROBE
int main(void) { return 0; }
#endif
