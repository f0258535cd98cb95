/* A few doubles at a time, by instruction set. Every operation rounds each lane on its own, as the scalar one does. */
#ifndef DPGRAM_LANES_H
#define DPGRAM_LANES_H

#include <float.h>
#include <math.h>

#if LANES == 8

#include <immintrin.h>
typedef __m512d lanes;
#define l_load(p) _mm512_loadu_pd(p)
#define l_store(p, x) _mm512_storeu_pd(p, x)
#define l_set(x) _mm512_set1_pd(x)
#define l_max(a, b) _mm512_max_pd(a, b)
#define l_min(a, b) _mm512_min_pd(a, b)
#define l_add(a, b) _mm512_add_pd(a, b)
#define l_sub(a, b) _mm512_sub_pd(a, b)
#define l_mul(a, b) _mm512_mul_pd(a, b)
#define l_div(a, b) _mm512_div_pd(a, b)
#define l_trunc(x) _mm512_roundscale_pd(x, 3)
typedef __mmask8 chosen; /* one for each lane */
#define t_finite(x) _mm512_cmp_pd_mask(_mm512_abs_pd(x), l_set(DBL_MAX), _CMP_LE_OQ)
#define t_and(a, b) ((chosen)((a) & (b)))
#define t_all ((chosen)0xff)
#define t_is_all(t) ((t) == t_all)
#define l_pick(t, x, y) _mm512_mask_blend_pd(t, y, x) /* x where t is true, else y */

#elif LANES == 4

#include <immintrin.h>
typedef __m256d lanes;
#define l_load(p) _mm256_loadu_pd(p)
#define l_store(p, x) _mm256_storeu_pd(p, x)
#define l_set(x) _mm256_set1_pd(x)
#define l_max(a, b) _mm256_max_pd(a, b)
#define l_min(a, b) _mm256_min_pd(a, b)
#define l_add(a, b) _mm256_add_pd(a, b)
#define l_sub(a, b) _mm256_sub_pd(a, b)
#define l_mul(a, b) _mm256_mul_pd(a, b)
#define l_div(a, b) _mm256_div_pd(a, b)
#define l_trunc(x) _mm256_round_pd(x, 3)
typedef __m256d chosen;
#define t_finite(x) _mm256_cmp_pd(_mm256_andnot_pd(l_set(-0.0), x), l_set(DBL_MAX), _CMP_LE_OQ)
#define t_and(a, b) _mm256_and_pd(a, b)
#define t_all _mm256_cmp_pd(l_set(0.0), l_set(0.0), _CMP_EQ_OQ)
#define t_is_all(t) (_mm256_movemask_pd(t) == 0xf)
#define l_pick(t, x, y) _mm256_blendv_pd(y, x, t)

#else

typedef double lanes;
#undef LANES
#define LANES 1
#define l_load(p) (*(p))
#define l_store(p, x) (*(p) = (x))
#define l_set(x) (x)
#define l_max(a, b) ((a) > (b) ? (a) : (b))
#define l_min(a, b) ((a) < (b) ? (a) : (b))
#define l_add(a, b) ((a) + (b))
#define l_sub(a, b) ((a) - (b))
#define l_mul(a, b) ((a) * (b))
#define l_div(a, b) ((a) / (b))
#define l_trunc(x) trunc(x)
typedef int chosen;
#define t_finite(x) (fabs(x) <= DBL_MAX)
#define t_and(a, b) ((a) & (b))
#define t_all 1
#define t_is_all(t) (t)
#define l_pick(t, x, y) ((t) ? (x) : (y))

#endif
#endif
