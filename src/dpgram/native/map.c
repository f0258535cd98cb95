/* Products of a public map with grid points. Its rows' absolute values add up to at most 2^33 and points are at most 2^20, so all partial
 * sums are whole numbers of at most 2^53: neither order nor fused multiply-add changes a bit, and this file may be compiled with
 * contraction. */
#include "kernel.h"

typedef double vec __attribute__((vector_size(8 * LANES), aligned(8)));

#define LOAD(p) (*(const vec *)(p))
#define STORE(p, x) (*(vec *)(p) = (x))

/* Four rows of the map, w[4 j + i], times three vectors of points. */
static inline void tile(const double *w, const double *x, int64_t ld, int64_t d, double *y) {
    vec s00 = {0}, s01 = {0}, s02 = {0}, s10 = {0}, s11 = {0}, s12 = {0}, s20 = {0}, s21 = {0}, s22 = {0}, s30 = {0}, s31 = {0},
        s32 = {0};
    for (int64_t j = 0; j < d; j++, w += 4, x += ld) {
        const vec x0 = LOAD(x), x1 = LOAD(x + LANES), x2 = LOAD(x + 2 * LANES);
        double one = w[0];
        s00 += x0 * one; s01 += x1 * one; s02 += x2 * one;
        one = w[1];
        s10 += x0 * one; s11 += x1 * one; s12 += x2 * one;
        one = w[2];
        s20 += x0 * one; s21 += x1 * one; s22 += x2 * one;
        one = w[3];
        s30 += x0 * one; s31 += x1 * one; s32 += x2 * one;
    }
    STORE(y, s00); STORE(y + LANES, s01); STORE(y + 2 * LANES, s02);
    y += ld;
    STORE(y, s10); STORE(y + LANES, s11); STORE(y + 2 * LANES, s12);
    y += ld;
    STORE(y, s20); STORE(y + LANES, s21); STORE(y + 2 * LANES, s22);
    y += ld;
    STORE(y, s30); STORE(y + LANES, s31); STORE(y + 2 * LANES, s32);
}

/* y[i][r] = sum over j of whole_ij x[j][r], for n rows r, a multiple of MAP_STEP, which are the columns of `x` and `y`. `panels` holds the
 * map as struct map says. A few rows of points stay in the first cache while the map passes by them. */
void ISA_NAME(images)(const double *panels, const double *x, int64_t ld, int64_t d, int64_t n, double *y) {
    for (int64_t r = 0; r < n; r += 3 * LANES)
        for (int64_t i = 0; i < d; i += MAP_PANEL) tile(panels + i * d, x + r, ld, d, y + i * ld + r);
}
