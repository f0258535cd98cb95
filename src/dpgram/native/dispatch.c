/* Picks the instruction set when it is first called, and drives the two loops. */
#include <string.h>

#include "kernel.h"

#define DECLARE(isa)                                                                                                    \
    int points##isa(const struct column *, int32_t, int64_t, int64_t, double, const double *, double *, int64_t);      \
    int mapped##isa(const struct column *, int32_t, int64_t, int64_t, double, const double *, const struct map *,      \
                    double *, double *, int64_t, struct gathered *);                                                   \
    void gram##isa(const double *, int64_t, int64_t, int64_t, int64_t, double *);

DECLARE(_plain)
#ifdef HAVE_X86
DECLARE(_avx2)
DECLARE(_avx512)
#endif

typedef int (*points_function)(const struct column *, int32_t, int64_t, int64_t, double, const double *, double *, int64_t);
typedef int (*mapped_function)(const struct column *, int32_t, int64_t, int64_t, double, const double *, const struct map *,
                               double *, double *, int64_t, struct gathered *);
typedef void (*gram_function)(const double *, int64_t, int64_t, int64_t, int64_t, double *);

/* 0: whatever every machine of the family has; 1: AVX2 and FMA; 2: AVX-512. */
int32_t dpgram_best_isa(void) {
#ifdef HAVE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 1;
#endif
    return 0;
}

static points_function points_of(int32_t isa) {
#ifdef HAVE_X86
    if (isa == 2) return points_avx512;
    if (isa == 1) return points_avx2;
#endif
    (void)isa;
    return points_plain;
}

static mapped_function mapped_of(int32_t isa) {
#ifdef HAVE_X86
    if (isa == 2) return mapped_avx512;
    if (isa == 1) return mapped_avx2;
#endif
    (void)isa;
    return mapped_plain;
}

static gram_function gram_of(int32_t isa) {
#ifdef HAVE_X86
    if (isa == 2) return gram_avx512;
    if (isa == 1) return gram_avx2;
#endif
    (void)isa;
    return gram_plain;
}

/* Zero if the caller's structs have the sizes of ours. */
int32_t dpgram_layouts(int64_t size_of_column, int64_t size_of_map) {
    return size_of_column != (int64_t)sizeof(struct column) || size_of_map != (int64_t)sizeof(struct map);
}

/* Rows start..start+n as grid points, d by n, multiplied with `factors`, unless that is NULL; see rows.c. */
int32_t dpgram_points(int32_t isa, const struct column *columns, int32_t d, int64_t start, int64_t n, double most,
                      const double *factors, double *out, int64_t ld) {
    return points_of(isa)(columns, d, start, n, most, factors, out, ld);
}

/* Doubles of scratch for rows through a map. */
int64_t dpgram_map_scratch(int32_t d) { return (int64_t)d * MAP_LD; }

/* The same rows through a map that has one clip; `ld` is at least n rounded up to MAP_STEP, and `out` has d rows rounded up to MAP_PANEL. */
int32_t dpgram_mapped_points(int32_t isa, const struct column *columns, int32_t d, int64_t start, int64_t n, double most,
                             const double *factors, const struct map *map, double *scratch, double *out, int64_t ld) {
    return mapped_of(isa)(columns, d, start, n, most, factors, map, scratch, out, ld, NULL);
}

/* Doubles of scratch that dpgram_add needs, through a map or not, at one scale and `outer` more. */
int64_t dpgram_scratch(int32_t d, int32_t outer) {
    const int64_t dpad = (d + PAD - 1) / PAD * PAD;
    return dpad * (GRAM_ROWS + 8) + dpad * dpad + dpgram_map_scratch(d) + outer * dpad * OUTER_LD + LINE / sizeof(double);
}

static void add_sums(int64_t d, int64_t dpad, const double *sums, int64_t *total) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = i; j < d; j++) total[i * d + j] += (int64_t)sums[i * dpad + j];
}

/* Adds the Gram of what was gathered for scale k to its total, and lets it go; `sums` is overwritten. */
static void add_gathered(gram_function gram_at, struct gathered *from, int64_t k, int64_t d, int64_t dpad, double *sums,
                         int64_t *total) {
    double *points = from->points + k * from->apart;
    const int64_t whole = (from->held[k] + 7) / 8 * 8;
    for (int64_t c = 0; c < d; c++)
        for (int64_t r = from->held[k]; r < whole; r++) points[c * OUTER_LD + r] = 0.0;
    memset(sums, 0, sizeof(double) * (size_t)(dpad * dpad));
    gram_at(points, OUTER_LD, d, dpad, whole, sums);
    add_sums(d, dpad, sums, total + (k + 1) * d * d);
    from->held[k] = 0;
}

/* Adds the Gram of n rows, at most 2^22, to total: d by d, the upper triangle alone. The rows are multiplied by `map`, unless it is NULL;
 * where it has scales, total holds as many more matrices, for each of them one. Row r is then multiplied with factors[r], unless that is
 * NULL. Zero, or one if a bound could not be kept; total is then
 * worthless. */
int32_t dpgram_add(int32_t isa, const struct column *columns, int32_t d, int64_t n, double most, const double *factors,
                   const struct map *map, double *scratch, int64_t *total) {
    const int64_t dpad = (d + PAD - 1) / PAD * PAD, ld = GRAM_ROWS + 8;
    double *points = (double *)(((uintptr_t)scratch + LINE - 1) / LINE * LINE); /* no load then crosses two lines of the cache */
    double *sums = points + dpad * ld, *work = sums + dpad * dpad;
    const int64_t outer = map ? map->outer : 0;
    struct gathered gathered = {work + dpgram_map_scratch(d), dpad * OUTER_LD, {0}};
    const points_function points_at = points_of(isa);
    const mapped_function mapped_at = mapped_of(isa);
    const gram_function gram_at = gram_of(isa);
    memset(points + d * ld, 0, sizeof(double) * (size_t)((dpad - d) * ld));
    for (int64_t k = 0; k < outer; k++)
        memset(gathered.points + k * gathered.apart + d * OUTER_LD, 0, sizeof(double) * (size_t)((dpad - d) * OUTER_LD));
    for (int64_t block = 0; block < n; block += BLOCK_ROWS) {
        const int64_t end = n - block < BLOCK_ROWS ? n : block + BLOCK_ROWS;
        memset(sums, 0, sizeof(double) * (size_t)(dpad * dpad));
        for (int64_t start = block; start < end; start += GRAM_ROWS) {
            const int64_t m = end - start < GRAM_ROWS ? end - start : GRAM_ROWS, whole = (m + 7) / 8 * 8;
            if (map ? mapped_at(columns, d, start, m, most, factors, map, work, points, ld, &gathered)
                    : points_at(columns, d, start, m, most, factors, points, ld))
                return 1;
            for (int32_t c = 0; c < d; c++)
                for (int64_t r = m; r < whole; r++) points[c * ld + r] = 0.0;
            gram_at(points, ld, d, dpad, whole, sums);
            int full = 0;
            for (int64_t k = 0; k < outer; k++) full |= gathered.held[k] > OUTER_ROWS - GRAM_ROWS;
            if (!full) continue;
            add_sums(d, dpad, sums, total);
            for (int64_t k = 0; k < outer; k++)
                if (gathered.held[k] > OUTER_ROWS - GRAM_ROWS) add_gathered(gram_at, &gathered, k, d, dpad, sums, total);
            memset(sums, 0, sizeof(double) * (size_t)(dpad * dpad));
        }
        add_sums(d, dpad, sums, total);
    }
    for (int64_t k = 0; k < outer; k++) add_gathered(gram_at, &gathered, k, d, dpad, sums, total);
    return 0;
}

/* Adds whole numbers, d by d, to total: the upper triangle alone. */
void dpgram_add_sums(int32_t d, const double *sums, int64_t *total) { add_sums(d, d, sums, total); }

/* The level of each of n cells: `levels[place]` by the cell's place in a dictionary of `values`, and `levels[values]` where its validity bit
 * is zero (`valid` is NULL if none is). Zero, or one if a place is outside the dictionary; `out` is then worthless. */
int32_t dpgram_levels(const int32_t *places, const uint8_t *valid, int64_t first_valid, int64_t n, const uint16_t *levels,
                      int64_t values, uint16_t *restrict out) {
    int outside = 0;
    for (int64_t r = 0; r < n; r++) {
        const int64_t bit = first_valid + r;
        const uint32_t place = (uint32_t)places[r]; /* a negative one is far outside */
        const int there = valid ? valid[bit >> 3] >> (bit & 7) & 1 : 1, within = place < values;
        outside |= there & !within;
        out[r] = levels[there & within ? place : values];
    }
    return outside;
}
