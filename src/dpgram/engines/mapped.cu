// Cells to grid points to their images under a public map to exact sums, in one read of the cells; see rows/clip.py.
//
// A warp takes 8 rows by PADDED columns at a time. Of 4 columns, lane 4 i + k holds row i and column k: the second operand of a product
// whose first are the numbers of the map. What comes out is a tile of 8 image columns by 8 rows, in which lane 4 i + k holds column i
// and rows 2 k and 2 k + 1: two parts of points as tiles.cu wants them. STEPS such groups are in flight.
//
// The map's numbers are whole numbers times a power of two of their row, and their products with grid points add up to less than 2^53 of
// it: exact in any order.

constexpr int PARTS = 2 * STEPS;
static_assert(STEPS <= 4 && (BANDS % 2 == 0 || STEPS % 2 == 0), "8 lanes hold a row, and a band that is left over takes two groups");
constexpr int GROUP = 8 * STEPS;                // rows of one iteration of a warp
constexpr int ITERATIONS = 4096 / GROUP;        // sums of 4096 products of at most 2^40 are exact in double precision
constexpr int BLOCK_SUMS = TILES * 64;          // of one scale

struct Table {
    const cell* first;
    i64 rows, row_stride;
    const i64* offsets;  // of 4 columns after the other, this lane's

    // Beyond the last row it is the last one's: it counts for nothing.
    __device__ __forceinline__ cell at(i64 row, int k) const { return first[min(row, rows - 1) * row_stride + offsets[4 * k]]; }
};

// An 8 by 8 tile whose lane 4 i + k holds row i and columns 2 k and 2 k + 1, to one where it holds column i and rows 2 k and 2 k + 1. In
// each of two exchanges every lane sends one of its numbers to the one lane that wants it.
__device__ __forceinline__ void transpose(double (&tile)[2], int lane) {
    int i = lane >> 2, k = lane & 3;
    bool odd = i & 1;
    double here = odd ? tile[1] : tile[0], there = odd ? tile[0] : tile[1];
    here = __shfl_sync(ALL, here, 4 * (2 * k + odd) + (i >> 1));
    there = __shfl_sync(ALL, there, 4 * (2 * k + !odd) + (i >> 1));
    tile[0] = odd ? there : here;
    tile[1] = odd ? here : there;
}

// Images of one group of rows. Each cell makes place for that of the next group, which is on its way while this one is multiplied. Bands
// go in pairs; one that is left over is the second operand of a product with two groups of rows, and comes out transposed.
template <bool TAIL>
__device__ __forceinline__ void map_rows(double (&images)[BANDS][STEPS][2], cell (&raw)[2 * BANDS][STEPS], const Table& table, i64 row,
                                         i64 next, const Column* plan, const double* map, int lane) {
#pragma unroll
    for (int j = 0; j < BANDS; j++)
#pragma unroll
        for (int s = 0; s < STEPS; s++) images[j][s][0] = images[j][s][1] = 0.0;
#pragma unroll
    for (int k = 0; k < 2 * BANDS; k++) {
        const Column column = plan[4 * k + (lane & 3)];
        double points[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            double p = grid_point(widen(raw[k][s]), column);
            points[s] = !TAIL || row + 8 * s < table.rows ? p : 0.0;
            if (!TAIL) raw[k][s] = table.at(next + 8 * s, k);
        }
        const double* numbers = map + k * BANDS * 32 + lane;
#pragma unroll
        for (int j = 0; j + 1 < BANDS; j += 2)
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                multiply_add(images[j][s], images[j + 1][s], numbers[32 * j], numbers[32 * j + 32], points[s]);
        if (BANDS % 2) {
#pragma unroll
            for (int s = 0; s < STEPS; s += 2)
                multiply_add(images[BANDS - 1][s], images[BANDS - 1][s + 1], points[s], points[s + 1], numbers[32 * (BANDS - 1)]);
        }
    }
    if (BANDS % 2) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) transpose(images[BANDS - 1][s], lane);
    }
}

// Whole numbers below 2^21. Comes back: by how many powers of two each row was divided, for the row that squares_of gives this lane.
__device__ __forceinline__ int put_on_grid(double (&images)[BANDS][PARTS], int lane) {
    int largest[PARTS], mine = 0;
    bool large = false;
#pragma unroll
    for (int s = 0; s < PARTS; s++) {
        largest[s] = 0;
#pragma unroll
        for (int j = 0; j < BANDS; j++) largest[s] = max(largest[s], size_of(images[j][s]));
        large |= largest[s] >= LARGE;
    }
    if (__any_sync(ALL, large)) {
#pragma unroll
        for (int s = 0; s < PARTS; s++) {
#pragma unroll
            for (int mask = 16; mask >= 4; mask /= 2) largest[s] = max(largest[s], __shfl_xor_sync(ALL, largest[s], mask));
            int excess = excess_of(largest[s]);
            if (s == lane / (32 / PARTS)) mine = excess;
            double power = power_of_two(-excess);
#pragma unroll
            for (int j = 0; j < BANDS; j++) images[j][s] = __dmul_rn(images[j][s], power);
        }
    }
#pragma unroll
    for (int s = 0; s < PARTS; s++)
#pragma unroll
        for (int j = 0; j < BANDS; j++) images[j][s] = truncate(images[j][s]);
    return mine;
}

// The images times the factor that the lane of their row holds, as whole numbers.
template <int SOME>
__device__ __forceinline__ void shrink(double (&to)[BANDS][SOME], const double (&images)[BANDS][SOME], double factor, int lane) {
#pragma unroll
    for (int s = 0; s < SOME; s++) {
        double mine = __shfl_sync(ALL, factor, s * (32 / SOME) + (lane & 3));
#pragma unroll
        for (int j = 0; j < BANDS; j++) to[j][s] = truncate(__dmul_rn(images[j][s], mine));
    }
}

// One scale: rows above the bound are shrunk to it.
__device__ __forceinline__ void clip_rows(double (&images)[BANDS][PARTS], double most, int lane, i64* broken) {
    double squares = squares_of(images, lane);
    if (__any_sync(ALL, squares > most)) {
        shrink(images, images, squares > most ? shrinking(most, squares) : 1.0, lane);
        if (squares_of(images, lane) > most) *broken = 1;
    }
}

#if SCALES > 1
constexpr int TOGETHER = 8;  // long rows that are shared between scales at once: 2 parts

// Long rows of a warp: few in most groups, so they wait until some are together.
struct Waiting {
    float (*rows)[PADDED + 1];  // of points, which are below 2^21, and by how many powers of two they were divided
    int count;

    // Takes long rows out of the images.
    __device__ __forceinline__ void take(double (&images)[BANDS][PARTS], int excess, int lane) {
        bool is_long = squared_length(squares_of(images, lane), excess) > 1.0;
        unsigned long_rows = __ballot_sync(ALL, is_long && lane % (32 / PARTS) < 4);
        if (long_rows == 0) return;
        if (long_rows >> lane & 1) rows[count + __popc(long_rows & ((1u << lane) - 1))][PADDED] = excess;
#pragma unroll
        for (int s = 0; s < PARTS; s++) {
            int bit = s * (32 / PARTS) + (lane & 3);
            if (long_rows >> bit & 1) {
                float* row = rows[count + __popc(long_rows & ((1u << bit) - 1))];
#pragma unroll
                for (int j = 0; j < BANDS; j++) {
                    row[8 * j + (lane >> 2)] = (float)images[j][s];
                    images[j][s] = 0.0;
                }
            }
        }
        count += __popc(long_rows);
        __syncwarp();
    }

    // Shares the last of them: what is for the first scale is added to sums, the rest to the block's sums of another scale.
    __device__ __forceinline__ void share(double (&sums)[TILES][2], u64* total, int lane, i64* broken) {
        int taken = min(count, TOGETHER), excess = 0;
        count -= taken;
        double images[BANDS][2], points[BANDS][2];
#pragma unroll
        for (int s = 0; s < 2; s++) {
            int place = 4 * s + (lane & 3);
            const float* row = rows[count + place];
#pragma unroll
            for (int j = 0; j < BANDS; j++) images[j][s] = place < taken ? row[8 * j + (lane >> 2)] : 0.0;
            if (s == lane / 16 && place < taken) excess = (int)row[PADDED];
        }
        __syncwarp();
        const Shares shares(squares_of(images, lane), excess);
        double second = 0.0;
        for (int k = 1; k < SCALES; k++) {
            if (!__any_sync(ALL, shares.place == k)) continue;
            double those[TILES][2] = {};
            shrink(points, images, shares.place == k ? shares.second : 0.0, lane);
            second += squares_of(points, lane);
            add_products(those, points);
            spill(those, total + k * BLOCK_SUMS, lane);
        }
        shrink(points, images, shares.first, lane);
        double first = squares_of(points, lane);
        if (shares.place && !together(first, second)) *broken = 1;
        add_products(sums, points);
    }
};
#endif

// map: for each 4 columns and each band of images, what each lane multiplies. totals: SCALES * BLOCK_SUMS for each block, whose sums stay
// below 2^62 for at most 2^22 rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
mapped(const cell* __restrict__ first, i64 rows, i64 row_stride, i64 column_stride, const i64* __restrict__ declared, i64 dim,
       double most, i64* state, u64* totals) {
    __shared__ __align__(16) char declared_here[PADDED * sizeof(Column)];
    Column* plan = (Column*)declared_here;
    __shared__ double map[2 * BANDS * BANDS * 32];
    __shared__ i64 offsets[PADDED];
    u64* total = totals + (i64)blockIdx.x * SCALES * BLOCK_SUMS;
    read_plan(plan, declared);
    for (int c = threadIdx.x; c < 2 * BANDS * BANDS * 32; c += THREADS) map[c] = __longlong_as_double(declared[(FIELDS + 1) * PADDED + c]);
    for (int c = threadIdx.x; c < PADDED; c += THREADS) offsets[c] = max(declared[c], 0ll) * column_stride;
    for (int c = threadIdx.x; c < SCALES * BLOCK_SUMS; c += THREADS) total[c] = 0;
    __threadfence();
    __syncthreads();

    const int lane = threadIdx.x & 31;
    const i64 groups = rows / GROUP, stride = (i64)gridDim.x * (THREADS / 32);
    i64 group = (i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    const Table table{first, rows, row_stride, offsets + (lane & 3)};
    i64* broken = state + 2 * SCALES * dim * dim;
    double sums[TILES][2] = {};
    cell raw[2 * BANDS][STEPS];
#if SCALES > 1
    __shared__ float waiting[THREADS / 32][GROUP + TOGETHER][PADDED + 1];
    Waiting long_rows{waiting[threadIdx.x / 32], 0};
#endif
    int iterations = 0;
#pragma unroll
    for (int k = 0; k < 2 * BANDS; k++)
#pragma unroll
        for (int s = 0; s < STEPS; s++) raw[k][s] = table.at(group * GROUP + (lane >> 2) + 8 * s, k);
    for (bool tail = false; group < groups || (tail = group == groups && rows % GROUP); group += stride) {
        i64 row = group * GROUP + (lane >> 2);
        double images[BANDS][STEPS][2];
        if (tail) map_rows<true>(images, raw, table, row, row, plan, map, lane);
        else map_rows<false>(images, raw, table, row, row + stride * GROUP, plan, map, lane);
        double(&points)[BANDS][PARTS] = (double(&)[BANDS][PARTS])images;
        int excess = put_on_grid(points, lane);
#if SCALES == 1
        clip_rows(points, most, lane, broken);
        iterations++;
#else
        long_rows.take(points, excess, lane);
        for (; long_rows.count >= TOGETHER; iterations++) long_rows.share(sums, total, lane, broken);
        iterations++;
#endif
        add_products(sums, points);
        if (iterations >= ITERATIONS - 6) {  // the next may add six groups at most: its rows twice, and those that waited
            spill(sums, total, lane);
            iterations = 0;
        }
    }
#if SCALES > 1
    long_rows.share(sums, total, lane, broken);
#endif
    spill(sums, total, lane);
    __threadfence();
    __syncthreads();
    add_to_state(total, SCALES, (int)dim, state);
}
