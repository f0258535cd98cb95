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
    FULL = 80,           /* percent of a table: it then grows by MORE */
    MORE = 30,           /* percent, so that slots of 24 bytes are at most 39 for each unit */
    MORE_NUMBERS = 90,   /* the same where they are of 16 bytes: 38 */
    MOST_WAITING = 512,  /* rows for one table that a thread counts together */
    AHEAD = 32,          /* how many keys ahead slots are asked for */
    PATIENCE = 100,      /* looks at a table that another thread holds, before the processor is left to others */
    SHORT = 15,          /* bytes of a text that is its own key */
    LONGEST_NUMBER = 20, /* characters of a whole number of 64 bits */
    WHOLE_NUMBER = 16    /* the last byte of a key: this, or how long a short text is, or at least 128; zero where there is no id */
};

enum failure { NONE, NO_ROOM, NO_MEMORY };

struct key {
    uint64_t low, high;
};

/* A slot is words: the low half of a key, the high half, and how often the key was counted, at most 2^63 - 1 times; free where that is
 * zero. Whole numbers that are not negative, the most frequent ids, have no high half: all of theirs are the same. */
enum kind { NUMBERS, OTHERS, KINDS };

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
    struct key *waiting;                 /* MOST_WAITING for each table, of rows that are not counted yet */
    uint32_t how_many[KINDS][TABLES];    /* of them wait for it */
    uint64_t *spare;                     /* where a table's slots lie while it grows */
    int64_t spare_bytes;
    uint64_t mark;                       /* likewise, of the rows that this thread has counted */
};

#define WAITING_BYTES ((int64_t)sizeof(struct key) * TABLES * MOST_WAITING)

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
        if (digit > 9 || x > (most - digit) / 10) return 0;
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

/* Room for one thread to count rows in, or NULL where there is no memory. It goes with `dpgram_counting_free`. */
struct counting *dpgram_counting_new(struct units *units) {
    struct counting *counting = calloc(1, sizeof *counting);
    if (!counting) return NULL;
    counting->units = units;
    counting->waiting = malloc(KINDS * WAITING_BYTES);
    if (!counting->waiting) {
        free(counting);
        return NULL;
    }
    return counting; /* the limit is about units, however many threads count them */
}

void dpgram_counting_free(struct counting *counting) {
    if (!counting) return;
    free(counting->waiting);
    free(counting->spare);
    free(counting);
}

static inline int is_id(struct key key) { return key.high >> 56 != 0; }

static inline enum kind kind_of(struct key key) { return key.high == (uint64_t)WHOLE_NUMBER << 56 ? NUMBERS : OTHERS; }

static inline int words_of(enum kind kind) { return kind == NUMBERS ? 2 : 3; }

/* Depends on the secret, so that nobody can choose ids that fall into the same place. */
static inline uint64_t hashed(const struct units *units, struct key key) {
    const uint64_t *secret = units->secret;
    uint64_t h = (key.low ^ secret[0]) * secret[1];
    h ^= h >> 32;
    h = (h ^ key.high ^ secret[2]) * secret[3];
    h ^= h >> 29;
    return h * secret[1];
}

static inline uint64_t *first_slot(const struct table *table, uint64_t hash, int words) {
    return table->slots + ((uint64_t)(uint32_t)(hash >> SLOT_SHIFT) * table->capacity >> 32) * (uint64_t)words;
}

static inline struct key key_in(const uint64_t *slot, int words) {
    return (struct key){slot[0], words == 2 ? (uint64_t)WHOLE_NUMBER << 56 : slot[1]};
}

/* The slot of a key, or the free one where it belongs. The table has one that is free. `words` are those of its kind. */
static inline uint64_t *slot_of(const struct table *table, uint64_t hash, struct key key, int words) {
    const uint64_t *end = table->slots + (uint64_t)table->capacity * (uint64_t)words;
    uint64_t *slot = first_slot(table, hash, words);
    while (slot[words - 1] && (slot[0] != key.low || (words == 3 && slot[1] != key.high)))
        slot = slot + words == end ? table->slots : slot + words;
    return slot;
}

static inline void put(uint64_t *slot, struct key key, uint64_t count, int words) {
    slot[0] = key.low;
    if (words == 3) slot[1] = key.high;
    slot[words - 1] = count;
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
static enum failure grow(struct counting *counting, struct table *table, int words) {
    struct units *units = counting->units;
    const uint64_t part = words == 2 ? MORE_NUMBERS : MORE;
    const uint64_t capacity = (uint64_t)table->capacity + (uint64_t)table->capacity * part / 100 + 8;
    const int64_t size = (int64_t)sizeof(uint64_t) * words, old = table->capacity * size, new = (int64_t)capacity * size;
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
        const uint64_t *from = counting->spare + (uint64_t)i * (uint64_t)words;
        const struct key key = key_in(from, words);
        if (from[words - 1]) put(slot_of(table, hashed(units, key), key, words), key, from[words - 1], words);
    }
    return NONE;
}

/* The hash of key i, whose slots are asked for; zero beyond the last one. */
static inline uint64_t asked_for(const struct units *units, const struct key *keys, int64_t i, int64_t n) {
    if (i >= n) return 0;
    const uint64_t hash = hashed(units, keys[i]);
    const enum kind kind = kind_of(keys[i]);
    const char *slot = (const char *)first_slot(&units->tables[kind][hash >> TABLE_SHIFT], hash, words_of(kind));
    __builtin_prefetch(slot, 1);
    __builtin_prefetch(slot + LINE, 1);
    return hash;
}

/* Counts n rows in a table of slots of so many words. */
static inline enum failure count_rows(struct counting *counting, struct table *table, const struct key *keys, int64_t n, int words) {
    struct units *units = counting->units;
    uint64_t hashes[AHEAD];
    int64_t added = 0;
    enum failure failure = NONE;
    for (int64_t r = 0; r < AHEAD; r++) hashes[r] = asked_for(units, keys, r, n);
    for (int64_t r = 0; r < n && failure == NONE; r++) {
        const uint64_t hash = hashes[r % AHEAD];
        hashes[r % AHEAD] = asked_for(units, keys, r + AHEAD, n);
        uint64_t *slot = table->capacity ? slot_of(table, hash, keys[r], words) : NULL;
        if (slot && slot[words - 1]) {
            slot[words - 1]++;
            continue;
        }
        if ((uint64_t)table->used * 100 >= (uint64_t)table->capacity * FULL) {
            failure = grow(counting, table, words);
            if (failure != NONE) break;
            slot = slot_of(table, hash, keys[r], words);
        }
        put(slot, keys[r], 1, words);
        table->used++, added++;
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
    const struct key *keys = counting->waiting + (kind * TABLES + which) * MOST_WAITING;
    const int64_t n = counting->how_many[kind][which];
    counting->how_many[kind][which] = 0;
    if (!n) return NONE;
    hold(table);
    const enum failure failure =
        kind == NUMBERS ? count_rows(counting, table, keys, n, 2) : count_rows(counting, table, keys, n, 3);
    atomic_flag_clear_explicit(&table->held, memory_order_release);
    return failure;
}

/* Counts n rows by their keys, now or when `dpgram_counting_finish` is called. NONE, or why it gave up; what was counted is then worthless.
 * Threads may do so at the same time, each with a `counting` of its own. */
int32_t dpgram_units_add(struct counting *counting, const struct key *keys, int64_t n) {
    if (!counting->waiting) return NO_MEMORY;
    for (int64_t r = 0; r < n; r++) {
        if (!is_id(keys[r])) continue;
        const uint64_t hash = hashed(counting->units, keys[r]), which = hash >> TABLE_SHIFT;
        counting->mark += hash;
        const enum kind kind = kind_of(keys[r]);
        uint32_t *how_many = &counting->how_many[kind][which];
        counting->waiting[(kind * TABLES + which) * MOST_WAITING + (*how_many)++] = keys[r];
        if (*how_many < MOST_WAITING) continue;
        const enum failure failure = count_waiting(counting, kind, which);
        if (failure != NONE) return failure;
    }
    return NONE;
}

/* Counts all rows that wait, after which none can be added here; likewise. */
int32_t dpgram_counting_finish(struct counting *counting) {
    enum failure failure = NONE;
    if (!counting->waiting) return NONE;
    for (int kind = 0; kind < KINDS; kind++)
        for (uint64_t t = 0; t < TABLES && failure == NONE; t++) failure = count_waiting(counting, (enum kind)kind, t);
    atomic_fetch_sub(&counting->units->bytes, counting->spare_bytes);
    atomic_fetch_add(&counting->units->mark, counting->mark);
    free(counting->waiting), free(counting->spare);
    counting->waiting = NULL, counting->spare = NULL, counting->spare_bytes = 0;
    return failure;
}

/* How many rows have each of n keys, zero where a key is none; the mark of these rows is added to `mark`. Zero, or one if a key was never
 * counted. Nothing may be counted meanwhile. */
int32_t dpgram_units_counts(const struct units *units, const struct key *keys, int64_t n, int64_t *counts, uint64_t *mark) {
    uint64_t hashes[AHEAD];
    int unknown = 0;
    for (int64_t r = 0; r < AHEAD; r++) hashes[r] = asked_for(units, keys, r, n);
    for (int64_t r = 0; r < n; r++) {
        const uint64_t hash = hashes[r % AHEAD];
        hashes[r % AHEAD] = asked_for(units, keys, r + AHEAD, n);
        const enum kind kind = kind_of(keys[r]);
        const struct table *table = &units->tables[kind][hash >> TABLE_SHIFT];
        if (!is_id(keys[r]) || !table->capacity) counts[r] = 0;
        else if (kind == NUMBERS) counts[r] = (int64_t)slot_of(table, hash, keys[r], 2)[1];
        else counts[r] = (int64_t)slot_of(table, hash, keys[r], 3)[2];
        if (!is_id(keys[r])) continue;
        unknown |= !counts[r];
        *mark += hash;
    }
    return unknown;
}
