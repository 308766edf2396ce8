// OpenBLAS: products of a row-major matrix with one input, and with several.

#include <cblas.h>

// The number of threads that there are then.
int peer_openblas_threads(int n_threads) {
    openblas_set_num_threads(n_threads);
    return openblas_get_num_threads();
}

void peer_openblas_sgemv(int n_rows, int n_cols, const float *w, const float *x, float *out) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, n_rows, n_cols, 1.0f, w, n_cols, x, 1, 0.0f, out, 1);
}

// Inputs are rows of `x`, outputs are rows of `out`.
void peer_openblas_sgemm(int n_rows, int n_cols, int n_inputs, const float *w, const float *x, float *out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n_inputs, n_rows, n_cols, 1.0f, x, n_cols, w, n_cols, 0.0f, out,
                n_rows);
}

#ifdef PEER_PROBE
int main(void) { return 0; }
#endif
