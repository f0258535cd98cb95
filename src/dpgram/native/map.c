/* A public map times grid points, on the grid again. The rows of the map have absolute values that add up to at most 2^33 and points are at
 * most 2^20, so all partial sums are whole numbers of at most 2^53, times the power of two of their row: neither order nor fused multiply-add
 * changes a bit. What squares are used for does not depend on how they round. So this file may be compiled with contraction. */
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

/* Both must be inlined: the compiler then knows how many rows there are, and GCC leaves out calls of functions that only prefetch. */
#define INLINED static inline __attribute__((always_inline))

/* Asks for n cells of a column from row `first` on; beyond the end of a table that does no harm. Cells that are far apart are asked for
 * when rows are read. */
INLINED void ask_for(const struct column *column, int64_t first, int64_t n) {
    if (column->rule == CONSTANT_ONE || column->cells == BITS || column->stride >= LINE) return;
    const char *from = (const char *)column->data + first * column->stride;
    for (int64_t at = 0; at < n * column->stride; at += LINE) __builtin_prefetch(from + at, 0, 2);
}

/* Adds one row of the map times three vectors of points to three sums. */
#define ADD(k, a, b, c)                          \
    one = w[k] - (vec){0};                       \
    HOLD(one)                                    \
    a += x0 * one, b += x1 * one, c += x2 * one;

/* Three vectors of one image, truncated. */
#define FINISH(a, b, c)                                         \
    a = TRUNC(a), b = TRUNC(b), c = TRUNC(c);                   \
    STORE(y, a), STORE(y + LANES, b), STORE(y + 2 * LANES, c);  \
    q0 += a * a, q1 += b * b, q2 += c * c;                      \
    y += to;

/* Three or four rows of the map, w[rows j + i], of d columns, times three vectors of points; the sums of squares grow by those of the
 * images. */
INLINED void tile(int rows, const double *w, const double *x, int64_t ld, int64_t d, double *y, int64_t to, double *squares) {
    vec s00 = {0}, s01 = {0}, s02 = {0}, s10 = {0}, s11 = {0}, s12 = {0}, s20 = {0}, s21 = {0}, s22 = {0}, s30 = {0}, s31 = {0},
        s32 = {0}, one;
    for (int64_t j = 0; j < d; j++, w += rows, x += ld) {
        const vec x0 = LOAD(x), x1 = LOAD(x + LANES), x2 = LOAD(x + 2 * LANES);
        ADD(0, s00, s01, s02)
        ADD(1, s10, s11, s12)
        ADD(2, s20, s21, s22)
        if (rows == 4) {
            ADD(3, s30, s31, s32)
        }
    }
    vec q0 = LOAD(squares), q1 = LOAD(squares + LANES), q2 = LOAD(squares + 2 * LANES);
    FINISH(s00, s01, s02)
    FINISH(s10, s11, s12)
    FINISH(s20, s21, s22)
    if (rows == 4) {
        FINISH(s30, s31, s32)
    }
    STORE(squares, q0), STORE(squares + LANES, q1), STORE(squares + 2 * LANES, q2);
}

/* Panels of so many rows, from row i of the map on. While the processor is busy with one, the memory gets as many columns of later rows. */
#define PANELS(rows, count)                                                                                                 \
    for (int64_t k = 0; k < (count); k++, i += (rows), w += (rows) * d, span += 2) {                                        \
        for (int64_t c = i; c < i + (rows) && c < d; c++) ask_for(columns + c, later + r, 3 * LANES);                       \
        tile(rows, w + span[0] * (rows), x + span[0] * ld + r, ld, span[1] - span[0], y + i * to + r, to, squares + r);     \
    }

/* y[i][r] = sum over j of map_ij x[j][r], truncated, for n rows r, a multiple of MAP_STEP, which are the columns of `x` and `y`, `ld` and
 * `to` doubles from one column of the table to the next. `squares` are exact where all images of a row are below 2^21, and at least 2^42
 * elsewhere. Columns in which all rows of a panel are zero are left out. A few rows of points stay in the first cache while the map
 * passes by them. Meanwhile the cells of n rows from `later` on are fetched. */
void ISA_NAME(images)(const struct map *map, const double *x, int64_t ld, int64_t d, int64_t n, double *y, int64_t to,
                      double *squares, const struct column *columns, int64_t later) {
    for (int64_t r = 0; r < n; r++) squares[r] = 0.0;
    for (int64_t r = 0; r < n; r += 3 * LANES) {
        const double *w = map->panels;
        const int64_t *span = map->spans;
        int64_t i = 0;
        PANELS(4, map->fours)
        PANELS(3, map->threes)
    }
}
