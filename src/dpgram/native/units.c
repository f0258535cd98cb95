/* How many rows each unit has: ids as keys of 16 bytes, and a hash table of keys and counts. See rows/units.py, which says what an id is. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <sched.h>
#endif

enum {
    LINE = 64,           /* bytes of a line of the cache */
    TABLES = 1024,       /* each grows by itself, so that little is held twice at a time */
    TABLE_SHIFT = 54,    /* of a hash: what is left says which table */
    SLOT_SHIFT = 22,     /* and the 32 bits from here on say where in it */
    FEWEST = 64,         /* slots of the first table; the others begin with more, up to MORE, so that they do not grow all at once */
    FULL = 80,           /* percent of a table: it then grows by MORE */
    MORE = 50,           /* percent, so that slots of 24 bytes are at most 39 for each unit */
    MORE_NUMBERS = 150,  /* the same where they are of 16 bytes, 36, or of 8 bytes, 18 */
    MOST_WAITING = 512,  /* rows for one table that a thread counts together */
    AHEAD = 32,          /* how many keys ahead slots are asked for */
    PATIENCE = 100,      /* looks at a table that another thread holds, before the processor is left to others */
    SHORT = 15,          /* bytes of a text that is its own key */
    LONGEST_NUMBER = 20, /* characters of a whole number of 64 bits */
    SURELY_FIT = 18,     /* so many digits are less than 2^63 */
    TIMES_BITS = 24,     /* of a small slot say how often its number was counted; the others are the number */
    WHOLE_NUMBER = 16    /* the last byte of a key: this, or how long a short text is, or at least 128; zero where there is no id */
};

_Static_assert(FEWEST * (100 - FULL) >= 200, "a table that is nearly full has a slot that is free, where every search ends");

enum failure { NONE, NO_ROOM, NO_MEMORY };

struct key {
    uint64_t low, high;
};

/* A slot is words: the low half of a key, the high half, and how often the key was counted, at most 2^63 - 1 times; free where that is
 * zero. Whole numbers that are not negative have no high half: all of theirs are the same. Those below 2^40, the most frequent ids, take
 * one word together with how often they were counted. One that was counted more often than fits there has a slot among the large numbers
 * as well, for the rest of its rows. */
enum kind { SMALL, LARGE, OTHERS, KINDS };

static const uint64_t WORDS_OF_SLOT[KINDS] = {1, 2, 3}, WORDS_OF_KEY[KINDS] = {1, 1, 2};

#define MOST_SMALL ((UINT64_C(1) << (64 - TIMES_BITS)) - 1)
#define MOST_TIMES ((UINT64_C(1) << TIMES_BITS) - 1)

struct table {
    uint64_t *slots;
    uint32_t capacity, used;
    atomic_flag held; /* by the thread that counts rows in it */
};

struct units {
    struct table tables[KINDS][TABLES];
    _Atomic int64_t bytes, count;
    _Atomic uint64_t mark; /* the hashes of all rows that were counted, added up */
    int64_t limit;
    uint64_t secret[4]; /* the second and the last are odd */
};

/* What one thread needs while rows are counted. */
struct counting {
    struct units *units;
    uint64_t *waiting[KINDS];            /* keys of rows that are not counted yet: MOST_WAITING for each table */
    uint32_t how_many[KINDS][TABLES];    /* of them wait for it */
    uint64_t *spare;                     /* where a table's slots lie while it grows */
    int64_t spare_bytes;
    uint64_t mark;                       /* likewise, of the rows that this thread has counted */
};

typedef int64_t loose __attribute__((aligned(1)));

static inline int is_there(const uint8_t *valid, int64_t bit) { return valid ? valid[bit >> 3] >> (bit & 7) & 1 : 1; }

/* Eight bytes as a number, the first one lowest; compilers make one load of it. */
static inline uint64_t eight_bytes(const uint8_t *p) {
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
           (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* Up to seven bytes likewise. */
static inline uint64_t few_bytes(const uint8_t *p, int64_t n) {
    uint64_t x = 0;
    for (int64_t i = 0; i < n; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}

static inline uint64_t turned(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[2] += v[3];
    v[1] = turned(v[1], 13) ^ v[0], v[3] = turned(v[3], 16) ^ v[2];
    v[0] = turned(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = turned(v[1], 17) ^ v[2], v[3] = turned(v[3], 21) ^ v[0];
    v[2] = turned(v[2], 32);
}

/* SipHash-2-4 with 128 bits of output (Aumasson and Bernstein 2012). */
static struct key siphash(const uint64_t secret[2], const uint8_t *text, int64_t n) {
    uint64_t v[4] = {secret[0] ^ UINT64_C(0x736f6d6570736575), secret[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
                     secret[0] ^ UINT64_C(0x6c7967656e657261), secret[1] ^ UINT64_C(0x7465646279746573)};
    struct key hash;
    for (int64_t at = 0; at <= n; at += 8) {
        const uint64_t block = at + 8 <= n ? eight_bytes(text + at) : few_bytes(text + at, n - at) | (uint64_t)n << 56;
        v[3] ^= block;
        for (int i = 0; i < 2; i++) sip_round(v);
        v[0] ^= block;
    }
    v[2] ^= 0xee;
    for (int i = 0; i < 4; i++) sip_round(v);
    hash.low = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    for (int i = 0; i < 4; i++) sip_round(v);
    hash.high = v[0] ^ v[1] ^ v[2] ^ v[3];
    return hash;
}

/* The hash of one text, to be compared with published ones. */
void dpgram_siphash(const uint64_t *secret, const uint8_t *text, int64_t n, uint64_t *out) {
    const struct key hash = siphash(secret, text, n);
    out[0] = hash.low, out[1] = hash.high;
}

static inline struct key number_key(uint64_t bits, int negative) {
    return (struct key){bits, (uint64_t)WHOLE_NUMBER << 56 | (uint64_t)negative};
}

/* Whether n characters are how a whole number of 64 bits, with a sign or without, is written; its key then. */
static int is_number(const uint8_t *text, int64_t n, struct key *key) {
    const int negative = text[0] == '-';
    const uint64_t most = negative ? UINT64_C(1) << 63 : UINT64_MAX;
    uint64_t x = 0;
    if (n > LONGEST_NUMBER || n == negative || (text[negative] == '0' && n > 1)) return 0;
    for (int64_t i = negative; i < n; i++) {
        const uint64_t digit = (uint64_t)text[i] - '0';
        if (digit > 9 || (i >= SURELY_FIT && x > (most - digit) / 10)) return 0;
        x = 10 * x + digit;
    }
    *key = number_key(negative ? 0 - x : x, negative);
    return 1;
}

static struct key text_key(const uint64_t *secret, const uint8_t *text, int64_t n) {
    struct key key = {0, 0};
    if (n == 0 || is_number(text, n, &key)) return key;
    if (n > SHORT) {
        key = siphash(secret, text, n);
        key.high |= UINT64_C(1) << 63;
        return key;
    }
    key.low = n >= 8 ? eight_bytes(text) : few_bytes(text, n);
    if (n > 8) key.high = eight_bytes(text + n - 8) >> 8 * (16 - n);
    key.high |= (uint64_t)n << 56;
    return key;
}

/* Keys of n whole numbers of 64 bits; zero where a validity bit is zero (`valid` is NULL if none is). */
void dpgram_number_keys(const loose *cells, int32_t with_sign, const uint8_t *valid, int64_t first_valid, int64_t n,
                               struct key *keys) {
    for (int64_t r = 0; r < n; r++)
        keys[r] = is_there(valid, first_valid + r) ? number_key((uint64_t)cells[r], with_sign && cells[r] < 0)
                                                   : (struct key){0, 0};
}

/* Keys of n texts, which lie one behind the other from offsets[0] on; likewise, and zero where a text is empty. Zero, or one if an offset is
 * outside the `bytes` that there are. */
int32_t dpgram_text_keys(const loose *offsets, const uint8_t *text, int64_t bytes, const uint8_t *valid,
                                int64_t first_valid, int64_t n, const uint64_t *secret, struct key *keys) {
    for (int64_t r = 0; r < n; r++) {
        const int64_t begin = offsets[r], end = offsets[r + 1];
        keys[r] = (struct key){0, 0};
        if (!is_there(valid, first_valid + r)) continue;
        if (begin < 0 || end < begin || end > bytes) return 1;
        keys[r] = text_key(secret, text + begin, end - begin);
    }
    return 0;
}

/* An empty table that will not take more than `limit` bytes, or NULL where there is no memory. `secret` is four random numbers. */
struct units *dpgram_units_new(int64_t limit, const uint64_t *secret) {
    struct units *units = calloc(1, sizeof *units);
    if (!units) return NULL;
    units->limit = limit;
    atomic_init(&units->bytes, (int64_t)sizeof *units);
    atomic_init(&units->count, 0);
    atomic_init(&units->mark, 0);
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < TABLES; t++) atomic_flag_clear(&units->tables[kind][t].held);
    for (int i = 0; i < 4; i++) units->secret[i] = secret[i] | (i & 1);
    return units;
}

void dpgram_units_free(struct units *units) {
    if (!units) return;
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < TABLES; t++) free(units->tables[kind][t].slots);
    free(units);
}

/* How many units there are, how many bytes they take, and the mark of the rows that were counted. */
void dpgram_units_size(struct units *units, int64_t *size) {
    size[0] = atomic_load(&units->count), size[1] = atomic_load(&units->bytes);
    size[2] = (int64_t)atomic_load(&units->mark);
}

static void free_room(struct counting *counting) {
    for (int kind = 0; kind < KINDS; kind++) {
        free(counting->waiting[kind]);
        counting->waiting[kind] = NULL;
    }
    free(counting->spare);
    counting->spare = NULL, counting->spare_bytes = 0;
}

void dpgram_counting_free(struct counting *counting) {
    if (!counting) return;
    free_room(counting);
    free(counting);
}

/* Room for one thread to count rows in, or NULL where there is no memory. It goes with `dpgram_counting_free`. */
struct counting *dpgram_counting_new(struct units *units) {
    struct counting *counting = calloc(1, sizeof *counting);
    if (!counting) return NULL;
    counting->units = units;
    for (int kind = 0; kind < KINDS; kind++)
        counting->waiting[kind] = malloc(sizeof(uint64_t) * TABLES * MOST_WAITING * WORDS_OF_KEY[kind]);
    if (counting->waiting[SMALL] && counting->waiting[LARGE] && counting->waiting[OTHERS])
        return counting; /* the limit is about units, however many threads count them */
    dpgram_counting_free(counting);
    return NULL;
}

static inline int is_id(struct key key) { return key.high >> 56 != 0; }

static inline enum kind kind_of(struct key key) {
    return key.high != (uint64_t)WHOLE_NUMBER << 56 ? OTHERS : key.low > MOST_SMALL ? LARGE : SMALL;
}

/* Both halves of the product of two numbers, one over the other: every bit of it depends on most bits of both. */
static inline uint64_t folded(uint64_t x, uint64_t y) {
    const unsigned __int128 product = (unsigned __int128)x * y;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Depends on the secret, so that nobody can choose ids that fall into the same place. Marks are sums of these hashes, so no change of ids
 * may change the hashes of many by the same amount: two products of 64 bits would not do, as their high bits depend on few. */
static inline uint64_t hashed(const struct units *units, struct key key) {
    const uint64_t *secret = units->secret;
    return folded(folded(key.low ^ secret[0], key.high ^ secret[1]) ^ secret[2], secret[3]);
}

/* From here on `kind` is a constant wherever a function is called, so that each kind has code of its own. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE uint64_t times_in(const uint64_t *slot, enum kind kind) {
    return kind == SMALL ? *slot & MOST_TIMES : slot[WORDS_OF_SLOT[kind] - 1];
}

ALWAYS_INLINE struct key key_in(const uint64_t *slot, enum kind kind) {
    return kind == OTHERS ? (struct key){slot[0], slot[1]} : number_key(kind == SMALL ? *slot >> TIMES_BITS : *slot, 0);
}

ALWAYS_INLINE int has_key(const uint64_t *slot, struct key key, enum kind kind) {
    const struct key there = key_in(slot, kind);
    return there.low == key.low && (kind != OTHERS || there.high == key.high);
}

ALWAYS_INLINE void put(uint64_t *slot, struct key key, uint64_t times, enum kind kind) {
    slot[0] = kind == SMALL ? key.low << TIMES_BITS | times : key.low;
    if (kind == OTHERS) slot[1] = key.high;
    if (kind != SMALL) slot[WORDS_OF_SLOT[kind] - 1] = times;
}

ALWAYS_INLINE uint64_t *first_slot(const struct table *table, uint64_t hash, enum kind kind) {
    return table->slots + ((uint64_t)(uint32_t)(hash >> SLOT_SHIFT) * table->capacity >> 32) * WORDS_OF_SLOT[kind];
}

/* The slot of a key, or the free one where it belongs. The table has one that is free. */
ALWAYS_INLINE uint64_t *slot_of(const struct table *table, uint64_t hash, struct key key, enum kind kind) {
    const uint64_t *end = table->slots + (uint64_t)table->capacity * WORDS_OF_SLOT[kind];
    uint64_t *slot = first_slot(table, hash, kind);
    while (times_in(slot, kind) && !has_key(slot, key, kind))
        slot = slot + WORDS_OF_SLOT[kind] == end ? table->slots : slot + WORDS_OF_SLOT[kind];
    return slot;
}

/* Takes `more` bytes of what the limit allows. */
static int may_take(struct units *units, int64_t more) {
    int64_t taken = atomic_load(&units->bytes);
    do {
        if (more > units->limit - taken) return 0;
    } while (!atomic_compare_exchange_weak(&units->bytes, &taken, taken + more));
    return 1;
}

/* Makes a table larger. Meanwhile what it holds is in `spare`, so that few new pages of memory are needed. */
static enum failure grow(struct counting *counting, struct table *table, enum kind kind) {
    struct units *units = counting->units;
    const uint64_t part = kind == OTHERS ? MORE : MORE_NUMBERS, words = WORDS_OF_SLOT[kind];
    const uint64_t begin = FEWEST + FEWEST * part * (uint64_t)(table - units->tables[kind]) / (100 * TABLES);
    const uint64_t capacity = table->capacity ? table->capacity + (uint64_t)table->capacity * part / 100 : begin;
    const int64_t size = (int64_t)(sizeof(uint64_t) * words), old = table->capacity * size, new = (int64_t)capacity * size;
    const int64_t more = old > counting->spare_bytes ? old - counting->spare_bytes : 0;
    if (capacity > UINT32_MAX || !may_take(units, new - old + more)) return NO_ROOM;
    if (more) {
        uint64_t *spare = realloc(counting->spare, (size_t)old);
        if (!spare) return NO_MEMORY;
        counting->spare = spare, counting->spare_bytes = old;
    }
    if (old) memcpy(counting->spare, table->slots, (size_t)old);
    uint64_t *slots = realloc(table->slots, (size_t)new);
    if (!slots) return NO_MEMORY;
    memset(slots, 0, (size_t)new);
    const uint32_t before = table->capacity;
    table->slots = slots, table->capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < before; i++) {
        const uint64_t *from = counting->spare + (uint64_t)i * words, times = times_in(from, kind);
        const struct key key = key_in(from, kind);
        if (times) put(slot_of(table, hashed(units, key), key, kind), key, times, kind);
    }
    return NONE;
}

/* Asks for the slots where a key of this hash may be. */
ALWAYS_INLINE void ask(const struct table *table, uint64_t hash, enum kind kind) {
    const char *slot = (const char *)first_slot(table, hash, kind);
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot + LINE, 1);
}

ALWAYS_INLINE struct key waiting_key(const uint64_t *waiting, int64_t i, enum kind kind) {
    return kind == OTHERS ? (struct key){waiting[2 * i], waiting[2 * i + 1]} : number_key(waiting[i], 0);
}

static enum failure wait_beyond(struct counting *counting, struct key key, uint64_t which);

/* Counts the n rows that wait for one table. There is no branch on whether a key is new, which nobody can predict. */
ALWAYS_INLINE enum failure count_rows(struct counting *counting, uint64_t which, int64_t n, enum kind kind) {
    struct units *units = counting->units;
    struct table *table = &units->tables[kind][which];
    const uint64_t *waiting = counting->waiting[kind] + which * MOST_WAITING * WORDS_OF_KEY[kind];
    uint64_t hashes[MOST_WAITING];
    int64_t added = 0;
    enum failure failure = NONE;
    for (int64_t r = 0; r < n; r++) hashes[r] = hashed(units, waiting_key(waiting, r, kind));
    for (int64_t r = 0; r < AHEAD && r < n; r++) ask(table, hashes[r], kind);
    for (int64_t r = 0; r < n; r++) {
        if ((uint64_t)table->used * 100 >= (uint64_t)table->capacity * FULL && (failure = grow(counting, table, kind)) != NONE) break;
        if (r + AHEAD < n) ask(table, hashes[r + AHEAD], kind);
        const struct key key = waiting_key(waiting, r, kind);
        uint64_t *slot = slot_of(table, hashes[r], key, kind);
        const uint64_t times = times_in(slot, kind);
        if (kind == SMALL && times == MOST_TIMES) {
            if ((failure = wait_beyond(counting, key, which)) != NONE) break;
            continue;
        }
        put(slot, key, times + 1, kind);
        table->used += times == 0;
        added += times == 0 && kind_of(key) == kind; /* else it is a small number, which has a slot already */
    }
    atomic_fetch_add(&units->count, added);
    return failure;
}

/* Only one thread at a time counts rows in a table; the others wait. */
static void hold(struct table *table) {
    for (int looks = 1; atomic_flag_test_and_set_explicit(&table->held, memory_order_acquire); looks++) {
        if (looks % PATIENCE) continue;
#ifdef _WIN32
        Sleep(0);
#else
        sched_yield();
#endif
    }
}

/* Counts the rows that wait for one table. Together they need few of its pages' addresses. */
static enum failure count_waiting(struct counting *counting, enum kind kind, uint64_t which) {
    struct table *table = &counting->units->tables[kind][which];
    const int64_t n = counting->how_many[kind][which];
    counting->how_many[kind][which] = 0;
    if (!n) return NONE;
    hold(table);
    const enum failure failure = kind == SMALL   ? count_rows(counting, which, n, SMALL)
                                 : kind == LARGE ? count_rows(counting, which, n, LARGE)
                                                 : count_rows(counting, which, n, OTHERS);
    atomic_flag_clear_explicit(&table->held, memory_order_release);
    return failure;
}

/* Lets a row wait until there are MOST_WAITING for its table, and then counts them. */
ALWAYS_INLINE enum failure wait_for(struct counting *counting, struct key key, uint64_t which, enum kind kind) {
    uint64_t *at = counting->waiting[kind] + (which * MOST_WAITING + counting->how_many[kind][which]) * WORDS_OF_KEY[kind];
    at[0] = key.low;
    if (kind == OTHERS) at[1] = key.high;
    return ++counting->how_many[kind][which] < MOST_WAITING ? NONE : count_waiting(counting, kind, which);
}

/* For a row whose small number has a full slot. Its table is held meanwhile, which never happens the other way round. */
static enum failure wait_beyond(struct counting *counting, struct key key, uint64_t which) {
    return wait_for(counting, key, which, LARGE);
}

/* Counts n rows by their keys, now or when `dpgram_counting_finish` is called. NONE, or why it gave up; what was counted is then worthless.
 * Threads may do so at the same time, each with a `counting` of its own. */
int32_t dpgram_units_add(struct counting *counting, const struct key *keys, int64_t n) {
    enum failure failure = NONE;
    if (!counting->waiting[SMALL]) return NO_MEMORY;
    for (int64_t r = 0; r < n && failure == NONE; r++) {
        if (!is_id(keys[r])) continue;
        const uint64_t hash = hashed(counting->units, keys[r]), which = hash >> TABLE_SHIFT;
        counting->mark += hash;
        const enum kind kind = kind_of(keys[r]);
        failure = kind == SMALL   ? wait_for(counting, keys[r], which, SMALL)
                  : kind == LARGE ? wait_for(counting, keys[r], which, LARGE)
                                  : wait_for(counting, keys[r], which, OTHERS);
    }
    return failure;
}

/* Counts all rows that wait, after which none can be added here; likewise. */
int32_t dpgram_counting_finish(struct counting *counting) {
    enum failure failure = NONE;
    if (!counting->waiting[SMALL]) return NONE;
    for (int kind = 0; kind < KINDS; kind++) /* small ones first: the rest of some of their rows waits among the large ones */
        for (uint64_t t = 0; t < TABLES && failure == NONE; t++) failure = count_waiting(counting, (enum kind)kind, t);
    atomic_fetch_sub(&counting->units->bytes, counting->spare_bytes);
    atomic_fetch_add(&counting->units->mark, counting->mark);
    free_room(counting);
    return failure;
}

ALWAYS_INLINE uint64_t times_of(const struct units *units, uint64_t hash, struct key key, enum kind kind) {
    const struct table *table = &units->tables[kind][hash >> TABLE_SHIFT];
    return table->capacity ? times_in(slot_of(table, hash, key, kind), kind) : 0;
}

/* GCC takes a function that does nothing but ask for memory for one that does nothing, unless it is inlined early. */
ALWAYS_INLINE void ask_for(const struct units *units, uint64_t hash, struct key key) {
    const enum kind kind = kind_of(key);
    const struct table *table = &units->tables[kind][hash >> TABLE_SHIFT];
    if (kind == SMALL) ask(table, hash, SMALL);
    else if (kind == LARGE) ask(table, hash, LARGE);
    else ask(table, hash, OTHERS);
}

/* How many rows have each of n keys, zero where a key is none; the mark of these rows is added to `mark`. Zero, or one if a key was never
 * counted. Nothing may be counted meanwhile. */
int32_t dpgram_units_counts(const struct units *units, const struct key *keys, int64_t n, int64_t *counts, uint64_t *mark) {
    uint64_t hashes[AHEAD] = {0};
    int unknown = 0;
    for (int64_t r = -AHEAD; r < n; r++) {
        const uint64_t hash = hashes[(r + AHEAD) % AHEAD];
        if (r + AHEAD < n) ask_for(units, hashes[(r + AHEAD) % AHEAD] = hashed(units, keys[r + AHEAD]), keys[r + AHEAD]);
        if (r < 0) continue;
        counts[r] = 0;
        if (!is_id(keys[r])) continue;
        const enum kind kind = kind_of(keys[r]);
        uint64_t times = kind == SMALL   ? times_of(units, hash, keys[r], SMALL)
                         : kind == LARGE ? times_of(units, hash, keys[r], LARGE)
                                         : times_of(units, hash, keys[r], OTHERS);
        if (kind == SMALL && times == MOST_TIMES) times += times_of(units, hash, keys[r], LARGE);
        counts[r] = (int64_t)times;
        unknown |= !times;
        *mark += hash;
    }
    return unknown;
}
