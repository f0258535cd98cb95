// The exact sum over grid points of more columns than a warp can hold: a block of 15 warps takes ROWS rows at a time to shared memory, and
// each warp holds the products of one pair out of five groups of SIDE bands. While rows are multiplied, the next ones are copied.
//
// With BOUND the rows are images under a public map, which are put on the grid and bounded first.

constexpr int WARPS = 15, ROWS = 32;
constexpr int WIDTH = 40 * SIDE;                    // of PADDED columns and more zeros
constexpr int PITCH = WIDTH + (SIDE % 2 ? 12 : 4);  // of a row in shared memory: 4 modulo 16, so that banks differ
constexpr int TILES = SIDE * SIDE;
constexpr int ITERATIONS = 4096 / ROWS;             // sums of 4096 products of at most 2^40 are exact in double precision
constexpr int EACH = (WIDTH + 31) / 32;             // columns of a row that a lane bounds
static_assert(THREADS == 32 * WARPS && SIDE <= 5 && PADDED <= WIDTH, "");

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) x += __shfl_xor_sync(ALL, x, mask);
    return x;
}

// Multiplies a row, of which each lane holds EACH numbers, and puts it on the grid again. Comes back: its sum of squares.
__device__ __forceinline__ double shrink(double (&x)[EACH], double factor) {
    double squares = 0.0;
#pragma unroll
    for (int c = 0; c < EACH; c++) {
        x[c] = truncate(__dmul_rn(x[c], factor));
        squares = __fma_rn(x[c], x[c], squares);
    }
    return warp_sum(squares);
}

// One row of images within its bound, in shared memory; the whole warp does it. part: which of several scales it is for. Comes back: the
// other scale that it is shared with, or 0.
__device__ __forceinline__ int bound_row(double* row, double most, int part, int lane, i64* broken) {
    double x[EACH], squares = 0.0;
    int largest = 0;
#pragma unroll
    for (int c = 0; c < EACH; c++) {
        x[c] = 32 * c + lane < WIDTH ? row[32 * c + lane] : 0.0;
        largest = max(largest, size_of(x[c]));
    }
    const int excess = excess_of(__reduce_max_sync(ALL, largest));
    const double power = power_of_two(-excess);
#pragma unroll
    for (int c = 0; c < EACH; c++) {
        x[c] = truncate(__dmul_rn(x[c], power));
        squares = __fma_rn(x[c], x[c], squares);
    }
    squares = warp_sum(squares);
#if SCALES == 1
    const int place = 0;
    if (squares > most) {
        squares = shrink(x, shrinking(most, squares));
        if (squares > most) *broken = 1;
    }
#else
    const Shares shares(squares, excess);
    const int place = shares.place;
    if (place && part == 0) {
        double other[EACH];
        for (int c = 0; c < EACH; c++) other[c] = x[c];
        if (!together(shrink(x, shares.first), shrink(other, shares.second))) *broken = 1;
    }
    if (part > 0) shrink(x, part == place ? shares.second : 0.0);
#endif
#pragma unroll
    for (int c = 0; c < EACH; c++)
        if (32 * c + lane < WIDTH) row[32 * c + lane] = x[c];
    return place;
}

// Tile i SIDE + j is that of band i of the first group and band j of the second. Where SIDE is odd, the last band of the first group is the
// second operand for pairs of bands of the second: those tiles lie transposed.
constexpr int PAIRED = SIDE / 2 * 2;

__device__ __forceinline__ void add_tiles(double (&sums)[TILES][2], const double* first, const double* second) {
    double a[SIDE], b[SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; i++) a[i] = first[8 * i], b[i] = second[8 * i];
#pragma unroll
    for (int j = 0; j < SIDE; j++)
#pragma unroll
        for (int i = 0; i < PAIRED; i += 2) multiply_add(sums[i * SIDE + j], sums[(i + 1) * SIDE + j], a[i], a[i + 1], b[j]);
    if (SIDE % 2) {
        const int last = (SIDE - 1) * SIDE;
#pragma unroll
        for (int j = 0; j < PAIRED; j += 2) multiply_add(sums[last + j], sums[last + j + 1], b[j], b[j + 1], a[SIDE - 1]);
        multiply_add(sums[TILES - 1], b[SIDE - 1], a[SIDE - 1]);
    }
}

// Starts to copy the rows of a tile; zeros where there are none.
__device__ __forceinline__ void copy(double* to, const double* points, i64 tile, i64 rows) {
    for (int c = threadIdx.x; c < ROWS * (PADDED / 2); c += THREADS) {
        int row = c / (PADDED / 2), column = 2 * (c % (PADDED / 2));
        i64 place = tile * ROWS + row;
        unsigned at = (unsigned)__cvta_generic_to_shared(to + row * PITCH + column);
        const double* from = points + min(place, rows - 1) * PADDED + column;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(place < rows ? 16 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// The pair of groups of this warp.
__device__ __forceinline__ void find_pair(int& low, int& high) {
    low = 0, high = threadIdx.x / 32;
    while (high >= 5 - low) high -= 5 - low++;
    high += low;
}

// room: 64-bit sums of each thread, which are added to; a block may see 2^22 rows before they are settled. places: the scale of each row,
// written for part 0.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
wide(const double* __restrict__ points, i64 rows, i64 dim, double most, i64* state, i64* room, i64 part,
     unsigned char* places) {
    extern __shared__ __align__(16) double memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    for (int c = threadIdx.x; c < 2 * ROWS * PITCH; c += THREADS) memory[c] = 0.0;  // columns of padding stay so
    int low, high;
    find_pair(low, high);
    double sums[TILES][2] = {};
    i64* own = room + (i64)blockIdx.x * THREADS * TILES * 2 + threadIdx.x;
    const i64 tiles = (rows + ROWS - 1) / ROWS;
    i64* broken = state + 2 * SCALES * dim * dim;
    int iterations = 0;
    __syncthreads();
    copy(memory, points, blockIdx.x, rows);
    int buffer = 0;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x, buffer ^= 1) {
        double* here = memory + buffer * ROWS * PITCH;
        const i64 next = tile + gridDim.x;
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // this tile is here, and nobody multiplies the last one any more
        if (next < tiles) copy(memory + (buffer ^ 1) * ROWS * PITCH, points, next, rows);
#if BOUND
        for (int row = warp; row < ROWS; row += WARPS) {
            int place = bound_row(here + row * PITCH, most, (int)part, lane, broken);
            if (SCALES > 1 && part == 0 && lane == 0 && tile * ROWS + row < rows) places[tile * ROWS + row] = (unsigned char)place;
        }
        __syncthreads();
#endif
        const double* from = here + (lane & 3) * PITCH + (lane >> 2);
#pragma unroll 2
        for (int step = 0; step < ROWS / 4; step++)
            add_tiles(sums, from + step * 4 * PITCH + low * 8 * SIDE, from + step * 4 * PITCH + high * 8 * SIDE);
        if (++iterations == ITERATIONS || next >= tiles) {
#pragma unroll
            for (int c = 0; c < 2 * TILES; c++) {
                own[c * THREADS] += __double2ll_rn(sums[c / 2][c % 2]);
                sums[c / 2][c % 2] = 0.0;
            }
            iterations = 0;
        }
    }
}

// Adds the sums of all threads to the state, for one of several scales, and sets them to zero.
extern "C" __global__ void __launch_bounds__(THREADS, 1) settle(i64* room, i64 dim, i64 part, i64* state) {
    const int lane = threadIdx.x & 31;
    i64* own = room + (i64)blockIdx.x * THREADS * TILES * 2 + threadIdx.x;
    int low, high;
    find_pair(low, high);
#pragma unroll 5
    for (int c = 0; c < 2 * TILES; c++) {
        int i = c / 2 / SIDE, j = c / 2 % SIDE, across = lane / 4, along = 2 * (lane % 4) + c % 2;
        bool turned = i >= PAIRED;
        int row = 8 * (SIDE * low + i) + (turned ? along : across), column = 8 * (SIDE * high + j) + (turned ? across : along);
        i64 value = own[c * THREADS];
        own[c * THREADS] = 0;
        if (max(row, column) >= dim || value == 0) continue;
        for (int mirror = 0; mirror < (low < high ? 2 : 1); mirror++) {
            i64 at = (part * dim + (mirror ? column : row)) * dim + (mirror ? row : column);
            atomicAdd((u64*)state + at, (u64)(value >> LIMB_BITS));
            atomicAdd((u64*)state + SCALES * dim * dim + at, (u64)(value & LIMB_MASK));
        }
    }
}
