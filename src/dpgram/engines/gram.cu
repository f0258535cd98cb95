// A warp takes 4 rows by PADDED columns at a time, laid out as the operand of a tensor-core product: lane 4 i + k holds row k and
// column i of each band of 8. The same registers serve as both operands of P' P. STEPS such groups are in flight.

constexpr int GROUP = 4 * STEPS;                  // rows of one iteration of a warp
constexpr int ITERATIONS = 4096 / GROUP;          // sums of 4096 products of at most 2^40 are exact in double precision

struct Cells {
    const cell* first;
    i64 row_stride;
    i64 offset[BANDS];
    bool here[BANDS];

    template <bool TAIL>
    __device__ __forceinline__ void load(cell (&raw)[BANDS][STEPS], i64 row, i64 rows) const {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            bool inside = !TAIL || row + 4 * s < rows;
            const cell* at = first + (row + 4 * s) * row_stride;
#pragma unroll
            for (int j = 0; j < BANDS; j++) raw[j][s] = inside && here[j] ? at[offset[j]] : cell{};
        }
    }
};

template <bool TAIL>
__device__ __forceinline__ void add_rows(double (&sums)[TILES][2], const cell (&raw)[BANDS][STEPS], const Column* plan, double most,
                                         i64 row, i64 rows, int lane, i64* broken) {
    double points[BANDS][STEPS];
#pragma unroll
    for (int j = 0; j < BANDS; j++) {
        const Column column = plan[8 * j + (lane >> 2)];
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            double p = grid_point(widen(raw[j][s]), column);
            points[j][s] = !TAIL || row + 4 * s < rows ? p : 0.0;
        }
    }
#if CLIP
    double squares = squares_of(points, lane);
    if (__any_sync(ALL, squares > most)) {
        double factor = squares > most ? shrinking(most, squares) : 1.0;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            double mine = __shfl_sync(ALL, factor, s * (32 / STEPS) + (lane & 3));
#pragma unroll
            for (int j = 0; j < BANDS; j++) points[j][s] = truncate(__dmul_rn(points[j][s], mine));
        }
        if (squares_of(points, lane) > most) *broken = 1;
    }
#endif
    add_products(sums, points);
}

// A block sees at most 2^22 rows, so its 64-bit sums stay below 2^62.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
gram(const cell* __restrict__ first, i64 rows, i64 row_stride, i64 column_stride, const i64* __restrict__ declared, i64 dim,
     double most, i64* state) {
    __shared__ __align__(16) char declared_here[PADDED * sizeof(Column)];
    Column* plan = (Column*)declared_here;
    __shared__ u64 total[TILES * 64];
    read_plan(plan, declared);
    for (int c = threadIdx.x; c < TILES * 64; c += THREADS) total[c] = 0;
    __syncthreads();

    const int lane = threadIdx.x & 31;
    Cells cells{first, row_stride};
#pragma unroll
    for (int j = 0; j < BANDS; j++) {
        i64 place = declared[8 * j + (lane >> 2)];
        cells.here[j] = place >= 0;
        cells.offset[j] = place * column_stride;
    }
    double sums[TILES][2] = {};
    const i64 groups = rows / GROUP, stride = (i64)gridDim.x * (THREADS / 32);
    i64 group = (i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    i64* broken = state + 2 * dim * dim;
    int iterations = 0;
    cell raw[BANDS][STEPS], next[BANDS][STEPS];
    if (group < groups) cells.load<false>(raw, group * GROUP + (lane & 3), rows);
    for (; group < groups; group += stride) {
        if (group + stride < groups) cells.load<false>(next, (group + stride) * GROUP + (lane & 3), rows);
        add_rows<false>(sums, raw, plan, most, 0, 0, lane, broken);
        if (++iterations == ITERATIONS - 1) {  // one is left for the tail
            spill(sums, total, lane);
            iterations = 0;
        }
#pragma unroll
        for (int j = 0; j < BANDS; j++)
#pragma unroll
            for (int s = 0; s < STEPS; s++) raw[j][s] = next[j][s];
    }
    if (group == groups && rows % GROUP) {
        cells.load<true>(raw, group * GROUP + (lane & 3), rows);
        add_rows<true>(sums, raw, plan, most, group * GROUP + (lane & 3), rows, lane, broken);
    }
    spill(sums, total, lane);
    __syncthreads();
    add_to_state(total, 1, (int)dim, state);
}
