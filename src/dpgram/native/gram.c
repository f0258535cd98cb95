/* Products of grid points. All partial sums are whole numbers below 2^53, so neither order nor fused multiply-add changes a
 * bit, and this file may be compiled with contraction. */
#include "kernel.h"

typedef double vec __attribute__((vector_size(8 * LANES), aligned(8)));

#define LOAD(p) (*(const vec *)(p))

#if LANES >= 4 && !defined(__clang__)
typedef double four __attribute__((vector_size(32), aligned(8)));
typedef int64_t places __attribute__((vector_size(32)));
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (places){i, j, k, l})
#if LANES == 8
#include <immintrin.h>
#define FOUR(x) ((four)_mm512_castpd512_pd256((__m512d)(x)) + (four)_mm512_extractf64x4_pd((__m512d)(x), 1))
#else
#define FOUR(x) (x)
#endif
#endif

/* Adds the sums over the lanes of four vectors to four doubles. */
static inline void add_lanes(double *o, vec a, vec b, vec c, vec d) {
#ifdef FOUR
    const four a4 = FOUR(a), b4 = FOUR(b), c4 = FOUR(c), d4 = FOUR(d);
    const four ab = PICK(a4, b4, 0, 4, 2, 6) + PICK(a4, b4, 1, 5, 3, 7), cd = PICK(c4, d4, 0, 4, 2, 6) + PICK(c4, d4, 1, 5, 3, 7);
    *(four *)o += PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);
#else
    for (int l = 0; l < LANES; l++) {
        o[0] += a[l];
        o[1] += b[l];
        o[2] += c[l];
        o[3] += d[l];
    }
#endif
}

/* Three rows of points times four. */
static inline void tile(const double *a0, const double *b0, const double *b1, const double *b2, const double *b3, int64_t ld,
                        int64_t n, double *o, int64_t dpad) {
    const double *a1 = a0 + ld, *a2 = a1 + ld;
    vec s00 = {0}, s01 = {0}, s02 = {0}, s03 = {0}, s10 = {0}, s11 = {0}, s12 = {0}, s13 = {0}, s20 = {0}, s21 = {0},
        s22 = {0}, s23 = {0};
    for (int64_t r = 0; r < n; r += LANES) {
        const vec x0 = LOAD(a0 + r), x1 = LOAD(a1 + r), x2 = LOAD(a2 + r);
        vec y = LOAD(b0 + r);
        HOLD(y)
        s00 += x0 * y; s10 += x1 * y; s20 += x2 * y;
        y = LOAD(b1 + r);
        HOLD(y)
        s01 += x0 * y; s11 += x1 * y; s21 += x2 * y;
        y = LOAD(b2 + r);
        HOLD(y)
        s02 += x0 * y; s12 += x1 * y; s22 += x2 * y;
        y = LOAD(b3 + r);
        HOLD(y)
        s03 += x0 * y; s13 += x1 * y; s23 += x2 * y;
    }
    add_lanes(o, s00, s01, s02, s03);
    add_lanes(o + dpad, s10, s11, s12, s13);
    add_lanes(o + 2 * dpad, s20, s21, s22, s23);
}

/* out[i][j] += sum over n of points[i][.] points[j][.], for i <= j < d at least; n is a multiple of 8. Points are `ld` doubles
 * apart, and there are dpad rows of them, d and then zeros up to a multiple of 12; `out` is dpad by dpad. A panel of rows stays in the
 * second cache while all others pass by it. */
void ISA_NAME(gram)(const double *points, int64_t ld, int64_t d, int64_t dpad, int64_t n, double *out) {
    for (int64_t panel = 0; panel < d; panel += PANEL)
        for (int64_t j = panel / 4 * 4; j < d; j += 4) {
            const double *b0 = points + j * ld, *b1 = b0 + ld, *b2 = b1 + ld, *b3 = b2 + ld;
            const int64_t last = j + 4 < panel + PANEL ? j + 4 : panel + PANEL;
            for (int64_t i = panel; i < (last < d ? last : d); i += 3)
                tile(points + i * ld, b0, b1, b2, b3, ld, n, out + i * dpad + j, dpad);
        }
}
