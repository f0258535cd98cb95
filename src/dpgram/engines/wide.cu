// The exact sum over grid points of more columns than a warp can hold: a block of 15 warps takes ROWS rows at a time to shared memory, and
// each warp holds the products of one pair out of five groups of SIDE bands. While rows are multiplied, the next ones are copied.

constexpr int WARPS = 15, ROWS = 32;
constexpr int WIDTH = 40 * SIDE;                    // of PADDED columns and more zeros
constexpr int PITCH = WIDTH + (SIDE % 2 ? 12 : 4);  // of a row in shared memory: 4 modulo 16, so that banks differ
constexpr int TILES = SIDE * SIDE;
constexpr int ITERATIONS = 4096 / ROWS;             // sums of 4096 products of at most 2^40 are exact in double precision
static_assert(THREADS == 32 * WARPS && SIDE <= 5 && PADDED <= WIDTH, "");

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

// Starts to copy the rows of a tile, those of the numbers given where there are any; zeros beyond the last one.
__device__ __forceinline__ void copy(double* to, const double* points, const int* numbers, i64 tile, i64 rows) {
    for (int c = threadIdx.x; c < ROWS * (PADDED / 2); c += THREADS) {
        int row = c / (PADDED / 2), column = 2 * (c % (PADDED / 2));
        i64 place = tile * ROWS + row, number = min(place, rows - 1);
        unsigned at = (unsigned)__cvta_generic_to_shared(to + row * PITCH + column);
        const double* from = points + (numbers ? numbers[number] : number) * PADDED + column;
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

// Adds the sums of rows to those that each thread has in own.
__device__ __forceinline__ void sum_rows(const double* points, const int* numbers, i64 rows, i64* own, double* memory, int low, int high) {
    const int lane = threadIdx.x & 31;
    const i64 tiles = (rows + ROWS - 1) / ROWS;
    double sums[TILES][2] = {};
    int iterations = 0, buffer = 0;
    __syncthreads();  // nobody reads memory any more
    if (blockIdx.x < tiles) copy(memory, points, numbers, blockIdx.x, rows);
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x, buffer ^= 1) {
        const i64 next = tile + gridDim.x;
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncthreads();  // this tile is here, and nobody multiplies the last one any more
        if (next < tiles) copy(memory + (buffer ^ 1) * ROWS * PITCH, points, numbers, next, rows);
        const double* from = memory + buffer * ROWS * PITCH + (lane & 3) * PITCH + (lane >> 2);
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

// inner, and where there are several scales outer, numbers and counts: as images.cu writes them. room: 64-bit sums of each thread for each
// scale, part for each of them; a block may see 2^22 rows before they are settled.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
wide(const double* __restrict__ inner, i64 rows, i64* room, i64 part, const double* __restrict__ outer, const int* __restrict__ numbers,
     const int* __restrict__ counts) {
    extern __shared__ __align__(16) double memory[];
    for (int c = threadIdx.x; c < 2 * ROWS * PITCH; c += THREADS) memory[c] = 0.0;  // columns of padding stay so
    int low, high;
    find_pair(low, high);
    i64* own = room + (i64)blockIdx.x * THREADS * TILES * 2 + threadIdx.x;
#if SCALES == 1
    sum_rows(inner, nullptr, rows, own, memory, low, high);
#else
#pragma unroll 1
    for (int k = 0; k < SCALES; k++)
        sum_rows(k ? outer : inner, k ? numbers + k * rows : nullptr, k ? counts[k] : rows, own + k * part, memory, low, high);
#endif
}

// Adds the sums of all threads to the state, for one of several scales, and sets them to zero.
extern "C" __global__ void __launch_bounds__(THREADS, 1) settle(i64* room, i64 dim, i64 part, i64* state) {
    const int lane = threadIdx.x & 31;
    i64* own = room + (i64)blockIdx.x * THREADS * TILES * 2 + threadIdx.x;
    int low, high;
    find_pair(low, high);
    i64 values[2 * TILES];
#pragma unroll
    for (int c = 0; c < 2 * TILES; c++) values[c] = own[c * THREADS];  // all at once: a load would wait for the store before it
#pragma unroll
    for (int c = 0; c < 2 * TILES; c++) {
        int i = c / 2 / SIDE, j = c / 2 % SIDE, across = lane / 4, along = 2 * (lane % 4) + c % 2;
        bool turned = i >= PAIRED;
        int row = 8 * (SIDE * low + i) + (turned ? along : across), column = 8 * (SIDE * high + j) + (turned ? across : along);
        i64 value = values[c];
        if (max(row, column) >= dim || value == 0) continue;
        own[c * THREADS] = 0;
        for (int mirror = 0; mirror < (low < high ? 2 : 1); mirror++) {
            i64 at = (part * dim + (mirror ? column : row)) * dim + (mirror ? row : column);
            atomicAdd((u64*)state + at, (u64)(value >> LIMB_BITS));
            atomicAdd((u64*)state + SCALES * dim * dim + at, (u64)(value & LIMB_MASK));
        }
    }
}
