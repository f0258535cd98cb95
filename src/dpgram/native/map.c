/* A public map times grid points, on the grid again. The rows of the map have absolute values that add up to at most 2^33 and points are at
 * most 2^20, so all partial sums are whole numbers of at most 2^53: neither order nor fused multiply-add changes a bit. Products with a
 * power of two are exact, and what squares are used for does not depend on how they round. So this file may be compiled with contraction. */
#include <math.h>

#include "kernel.h"

typedef double vec __attribute__((vector_size(8 * LANES), aligned(8)));

#define LOAD(p) (*(const vec *)(p))
#define STORE(p, x) (*(vec *)(p) = (x))

#if LANES == 8
#include <immintrin.h>
#define TRUNC(x) ((vec)_mm512_roundscale_pd((__m512d)(x), 3))
#elif LANES == 4
#include <immintrin.h>
#define TRUNC(x) ((vec)_mm256_round_pd((__m256d)(x), 3))
#else
static inline vec truncated(vec x) { return (vec){trunc(x[0]), trunc(x[1])}; }
#define TRUNC(x) truncated(x)
#endif

/* Three vectors of one image, times a power of two and truncated. */
#define FINISH(a, b, c, power)                                                     \
    a = TRUNC(a * (power)), b = TRUNC(b * (power)), c = TRUNC(c * (power));        \
    STORE(y, a), STORE(y + LANES, b), STORE(y + 2 * LANES, c);                     \
    q0 += a * a, q1 += b * b, q2 += c * c;                                         \
    y += to;

/* Four rows of the map, w[4 j + i], of d columns, times three vectors of points; the sums of squares grow by those of the images. */
static inline void tile(const double *w, const double *powers, const double *x, int64_t ld, int64_t d, double *y, int64_t to,
                        double *squares) {
    vec s00 = {0}, s01 = {0}, s02 = {0}, s10 = {0}, s11 = {0}, s12 = {0}, s20 = {0}, s21 = {0}, s22 = {0}, s30 = {0}, s31 = {0},
        s32 = {0};
    for (int64_t j = 0; j < d; j++, w += 4, x += ld) {
        const vec x0 = LOAD(x), x1 = LOAD(x + LANES), x2 = LOAD(x + 2 * LANES);
        vec one = w[0] - (vec){0};
        HOLD(one)
        s00 += x0 * one; s01 += x1 * one; s02 += x2 * one;
        one = w[1] - (vec){0};
        HOLD(one)
        s10 += x0 * one; s11 += x1 * one; s12 += x2 * one;
        one = w[2] - (vec){0};
        HOLD(one)
        s20 += x0 * one; s21 += x1 * one; s22 += x2 * one;
        one = w[3] - (vec){0};
        HOLD(one)
        s30 += x0 * one; s31 += x1 * one; s32 += x2 * one;
    }
    vec q0 = LOAD(squares), q1 = LOAD(squares + LANES), q2 = LOAD(squares + 2 * LANES);
    FINISH(s00, s01, s02, powers[0])
    FINISH(s10, s11, s12, powers[1])
    FINISH(s20, s21, s22, powers[2])
    FINISH(s30, s31, s32, powers[3])
    STORE(squares, q0), STORE(squares + LANES, q1), STORE(squares + 2 * LANES, q2);
}

/* y[i][r] = sum over j of whole_ij x[j][r], times the power of row i and truncated, for n rows r, a multiple of MAP_STEP, which are the
 * columns of `x` and `y`, `ld` and `to` doubles from one column of the table to the next. `squares` are exact where all images of a row
 * are below 2^21, and at least 2^42 elsewhere. Columns in which four rows of the map are zero are left out. A few rows of points stay in the first cache while the map passes by them. */
void ISA_NAME(images)(const struct map *map, const double *x, int64_t ld, int64_t d, int64_t n, double *y, int64_t to,
                      double *squares) {
    for (int64_t r = 0; r < n; r++) squares[r] = 0.0;
    for (int64_t r = 0; r < n; r += 3 * LANES)
        for (int64_t i = 0; i < d; i += MAP_PANEL) {
            const int64_t *span = map->spans + i / MAP_PANEL * 2;
            tile(map->panels + i * d + span[0] * MAP_PANEL, map->powers + i, x + span[0] * ld + r, ld, span[1] - span[0],
                 y + i * to + r, to, squares + r);
        }
}
