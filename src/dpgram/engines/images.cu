// Cells to grid points to their images under a public map, bounded, for more columns than a warp can hold: see rows/clip.py.
//
// A block of 4 warps takes ROWS rows at a time. Two warps hold the images of the upper 32 rows in their registers, half of the columns
// each, two those of the lower ones. The cells come 8 columns at a time: they are put on the grid in shared memory, beside the numbers of the
// map that go with them, while those before are multiplied. What is written is what another kernel sums (wide.cu).
//
// Sums of products with the map are exact in any order; see mapped.cu.

constexpr int PADDED = 8 * BANDS, HALF = (BANDS + 1) / 2;
constexpr int ROWS = 64, MINE = 4;       // rows of a block, and groups of 8 rows of a warp
constexpr int PITCH = 12;                // of a row of 8 points: 4 modulo 8, so that banks differ
constexpr int STAGE = 2 * 2 * HALF * 32;  // numbers of the map for 8 columns; where BANDS is odd, those of a band of zeros too
static_assert(THREADS == 128, "");

// Shared memory, in words of 8 bytes: kernels.py knows its size.
struct Memory {
    double map[3][STAGE];
    double points[2][ROWS * PITCH];
    double raw[3][ROWS * 8];   // cells, of at most 8 bytes
    double sides[2][2][ROWS];  // what two warps tell each other about their rows
    double plan[FIELDS * PADDED];
    i64 offsets[PADDED];
};

// Starts to copy a part of the map's numbers for 8 columns.
constexpr int MAP_PARTS = (STAGE + 2 * THREADS - 1) / (2 * THREADS);

__device__ __forceinline__ void copy_map(double* to, const i64* map, int band, int part) {
    int c = 2 * (threadIdx.x + part * THREADS);
    unsigned at = (unsigned)__cvta_generic_to_shared(to + 2 * threadIdx.x) + 16 * part * THREADS;
    const i64* from = map + band * STAGE + 2 * threadIdx.x + 2 * part * THREADS;
    if (STAGE % (2 * THREADS) == 0 || part + 1 < MAP_PARTS || c < STAGE)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// A thread's cells of 8 columns: one column, of every 16th row. By way of shared memory, because registers are short: a compiler would load
// them where they are used. The thread alone reads what it copied.
struct Cells {
    const cell* first;
    i64 row_stride;
    int last;

    // Starts to copy one of them. Beyond the last row it is the last one's: what becomes of that is not written.
    __device__ __forceinline__ void copy(double* raw, int tile, int band, const Memory& memory, int s) const {
        const cell* column = first + memory.offsets[8 * band + threadIdx.x % 8];
        cell* to = (cell*)raw + threadIdx.x + s * THREADS;
        const cell* from = column + min(tile * ROWS + (int)threadIdx.x / 8 + 16 * s, last) * row_stride;
        if constexpr (sizeof(cell) >= 4) {
            unsigned at = (unsigned)__cvta_generic_to_shared(to);
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(sizeof(cell)) : "memory");
        } else {
            *to = *from;
        }
    }

    __device__ __forceinline__ double on_grid(const double* raw, int band, const Memory& memory, int s) const {
        const Column column(memory.plan, PADDED, 8 * band + threadIdx.x % 8);
        return grid_point(widen(((const cell*)raw)[s * THREADS + threadIdx.x]), column);
    }
};

__device__ __forceinline__ void store(double* to, const double (&points)[MINE]) {
#pragma unroll
    for (int s = 0; s < MINE; s++) to[(threadIdx.x / 8 + 16 * s) * PITCH + threadIdx.x % 8] = points[s];
}

// The images that a warp holds: lane 4 i + k has columns 2 k and 2 k + 1 of each band, of row i of each group of 8.
struct Images {
    double values[MINE][HALF][2];
    int lane, below, right, turn;  // below: of the lower rows; right: of the second half of the columns; turn: which of two places to talk

    __device__ __forceinline__ bool has(int j) const { return BANDS % 2 == 0 || j + 1 < HALF || !right; }
    __device__ __forceinline__ int row(int m) const { return 32 * below + 8 * m + (lane >> 2); }

    template <class Do>
    __device__ __forceinline__ void each(int m, Do what) {
#pragma unroll
        for (int j = 0; j < HALF; j++) what(values[m][j][0]), what(values[m][j][1]);
    }

    // Adds the products of 8 columns of points with the map. Other work is done meanwhile, piece by piece, so that tensor cores wait for none
    // of it.
    template <int PIECES, class Do>
    __device__ __forceinline__ void add(const double* points, const double* map, Do meanwhile) {
        double a[2][MINE];
#pragma unroll
        for (int m = 0; m < MINE; m++)
#pragma unroll
            for (int step = 0; step < 2; step++) a[step][m] = points[row(m) * PITCH + 4 * step + (lane & 3)];
        const double* numbers = map + right * HALF * 32 + lane;
#pragma unroll
        for (int j = 0; j < HALF; j++) {
            double b[2] = {numbers[32 * j], numbers[32 * (2 * HALF + j)]};
#pragma unroll
            for (int m = 0; m < MINE; m += 2)
                multiply_add(values[m][j], values[m + 1][j], a[0][m], a[0][m + 1], a[1][m], a[1][m + 1], b[0], b[1]);
#pragma unroll
            for (int piece = j * PIECES / HALF; piece < (j + 1) * PIECES / HALF; piece++) meanwhile(piece);
        }
    }

    // What the warp with the other columns of these rows has in the same place.
    __device__ __forceinline__ void tell(const double (&mine)[MINE], double (&theirs)[MINE], Memory& memory) {
        turn ^= 1;
        if ((lane & 3) == 0) {
#pragma unroll
            for (int m = 0; m < MINE; m++) memory.sides[turn][right][row(m)] = mine[m];
        }
        __syncthreads();
#pragma unroll
        for (int m = 0; m < MINE; m++) theirs[m] = memory.sides[turn][!right][row(m)];
    }

    // Sums over whole rows, of which this lane knows its part.
    __device__ __forceinline__ void over_rows(double (&sums)[MINE], Memory& memory) {
        double theirs[MINE];
#pragma unroll
        for (int m = 0; m < MINE; m++)
#pragma unroll
            for (int mask = 2; mask > 0; mask /= 2) sums[m] += __shfl_xor_sync(ALL, sums[m], mask);
        tell(sums, theirs, memory);
#pragma unroll
        for (int m = 0; m < MINE; m++) sums[m] += theirs[m];
    }

    // Whole numbers below 2^21. Comes back: sums of squares, and by how many powers of two each row was divided.
    __device__ __forceinline__ void put_on_grid(double (&squares)[MINE], int (&excess)[MINE], Memory& memory) {
        int largest[MINE], most = 0;
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            largest[m] = excess[m] = 0;
            each(m, [&](double x) { largest[m] = max(largest[m], size_of(x)); });
            most = max(most, largest[m]);
        }
        if (__syncthreads_or(most >= LARGE)) {
            double mine[MINE], theirs[MINE];
#pragma unroll
            for (int m = 0; m < MINE; m++) {
#pragma unroll
                for (int mask = 2; mask > 0; mask /= 2) largest[m] = max(largest[m], __shfl_xor_sync(ALL, largest[m], mask));
                mine[m] = largest[m];
            }
            tell(mine, theirs, memory);
#pragma unroll
            for (int m = 0; m < MINE; m++) {
                excess[m] = excess_of(max(largest[m], (int)theirs[m]));
                double power = power_of_two(-excess[m]);
                each(m, [&](double& x) { x = __dmul_rn(x, power); });
            }
        }
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            squares[m] = 0.0;
            each(m, [&](double& x) {
                x = truncate(x);
                squares[m] = __fma_rn(x, x, squares[m]);  // whole numbers: exact
            });
        }
        over_rows(squares, memory);
    }

    // Writes a group of rows, times a factor on the grid if SCALED. Comes back: this lane's squares, in that case.
    template <bool SCALED>
    __device__ __forceinline__ double write(int m, double factor, double* row) const {
        double squares = 0.0;
#pragma unroll
        for (int j = 0; j < HALF; j++) {
            if (has(j)) {
                double x = values[m][j][0], y = values[m][j][1];
                if (SCALED) {
                    x = truncate(__dmul_rn(x, factor)), y = truncate(__dmul_rn(y, factor));
                    squares = __fma_rn(x, x, __fma_rn(y, y, squares));
                }
                *(double2*)(row + 8 * (right * HALF + j) + 2 * (lane & 3)) = make_double2(x, y);
            }
        }
        return squares;
    }
};

// declared: places and fields, then the map's numbers as mapped.cu wants them. inner: what is for the first scale, (rows, PADDED). Where there
// are several, outer: what of long rows is for another one, in the same place, numbers[k * rows]: which rows those of scale k are, and
// counts[k]: how many. There are less than 2^30 rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
images(const cell* __restrict__ first, i64 rows, i64 row_stride, i64 column_stride, const i64* __restrict__ declared, i64 dim, double most,
       double* inner, i64* state, double* outer, int* numbers, int* counts) {
    extern __shared__ __align__(16) char shared_words[];
    Memory& memory = *(Memory*)shared_words;
    const i64* map = declared + (FIELDS + 1) * PADDED;
    const int tiles = (int)((rows + ROWS - 1) / ROWS);
    i64* broken = state + 2 * SCALES * dim * dim;
    for (int c = threadIdx.x; c < FIELDS * PADDED; c += THREADS) memory.plan[c] = __longlong_as_double(declared[PADDED + c]);
    for (int c = threadIdx.x; c < PADDED; c += THREADS) memory.offsets[c] = max(declared[c], 0ll) * column_stride;
    __syncthreads();

    const int warp = threadIdx.x / 32;
    Cells cells{first, row_stride, (int)rows - 1};
    Images made;
    made.lane = threadIdx.x & 31, made.below = warp & 1, made.right = warp >> 1, made.turn = 0;
    double points[MINE];
#pragma unroll
    for (int band = 0; band < 3; band++) {  // two groups of copies: the cells of a band come with the map of the one before
#pragma unroll
        for (int s = 0; s < MINE; s++) cells.copy(memory.raw[band], blockIdx.x, band, memory, s);
        if (band == 0) continue;
#pragma unroll
        for (int part = 0; part < MAP_PARTS; part++) copy_map(memory.map[band - 1], map, band - 1, part);
        end_copies();
    }
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#pragma unroll
    for (int s = 0; s < MINE; s++) points[s] = cells.on_grid(memory.raw[0], 0, memory, s);
    store(memory.points[0], points);
    int buffer = 0, stage = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll
        for (int m = 0; m < MINE; m++) made.each(m, [](double& x) { x = 0.0; });
#pragma unroll 1
        for (int band = 0; band < BANDS; band++) {
            const int next = band + 1 < BANDS ? band + 1 : 0, ahead = (band + 3) % BANDS, other = stage < 2 ? stage + 1 : 0;
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();  // points and map of this band are here, and nobody multiplies the last ones any more
            made.add<2 * MINE + MAP_PARTS>(memory.points[buffer], memory.map[stage], [&](int piece) {
                if (piece < MINE) cells.copy(memory.raw[stage], ahead > band ? tile : tile + gridDim.x, ahead, memory, piece);
                else if (piece < MINE + MAP_PARTS) copy_map(memory.map[stage ? stage - 1 : 2], map, (band + 2) % BANDS, piece - MINE);
                else points[piece - MINE - MAP_PARTS] = cells.on_grid(memory.raw[other], next, memory, piece - MINE - MAP_PARTS);
            });
            end_copies();
            store(memory.points[buffer ^ 1], points);
            buffer ^= 1;
            stage = other;
        }
        double squares[MINE];
        int excess[MINE];
        made.put_on_grid(squares, excess, memory);
#if SCALES == 1
        bool any = false;
        double factor[MINE];
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            any |= squares[m] > most;
            factor[m] = squares[m] > most ? shrinking(most, squares[m]) : 1.0;
        }
#else
        bool any = false;
        double factor[MINE], second[MINE];
        int place[MINE];
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            const Shares shares(squares[m], excess[m]);
            i64 row = (i64)tile * ROWS + made.row(m);
            factor[m] = shares.first, place[m] = row < rows ? shares.place : 0;
            any |= place[m] > 0;
            second[m] = 0.0;
            if (__any_sync(ALL, place[m] > 0)) {
                if (place[m]) second[m] = made.write<true>(m, shares.second, outer + row * PADDED);
                if (place[m] && !made.right && (made.lane & 3) == 0) numbers[place[m] * rows + atomicAdd(counts + place[m], 1)] = (int)row;
            }
        }
#endif
#pragma unroll
        for (int m = 0; m < MINE; m++) {
            i64 row = (i64)tile * ROWS + made.row(m);
            bool scaled = SCALES == 1 || __any_sync(ALL, factor[m] != 1.0);  // the same in the warp with the other columns
            squares[m] = 0.0;
            if (row < rows && scaled) squares[m] = made.write<true>(m, factor[m], inner + row * PADDED);
            if (row < rows && !scaled) made.write<false>(m, 1.0, inner + row * PADDED);
        }
        if (__syncthreads_or(any)) {
            made.over_rows(squares, memory);
#if SCALES > 1
            made.over_rows(second, memory);
#endif
#pragma unroll
            for (int m = 0; m < MINE; m++) {
#if SCALES == 1
                if (squares[m] > most) *broken = 1;
#else
                if (place[m] && !together(squares[m], second[m])) *broken = 1;
#endif
            }
        }
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}
