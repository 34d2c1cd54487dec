/* Kept memory beneath NumPy's arrays (dcarray/core/floor.py): memory that NumPy frees is kept for its next arrays.
 *
 * The system clears and maps each page of fresh memory at its first touch, which takes longer than most arithmetic on it, and
 * NumPy gives large blocks back to the system at once.  The functions of NumPy's default memory handler (NEP 49) are replaced
 * for arrays of at least KEPT_FROM bytes, so that all threads are served, and handlers that a program sets are as before.
 *
 * Memory is mapped in multiples of huge pages, and divided into blocks.  A freed block is merged with freed neighbours.  What is
 * kept and what arrays use are together little more than arrays have used at once; blocks that were kept for the longest time
 * are given back first, and all that nobody has used for IDLE nanoseconds. */
#ifdef _WIN32
static PyObject *
set_kept_memory(PyObject *module, PyObject *args)
{
    Py_RETURN_FALSE;
}

static PyObject *
kept_memory(PyObject *module, PyObject *none)
{
    return Py_BuildValue("iiiii", 0, 0, 0, 0, 0);
}
#else
#include <sys/mman.h>
#include <unistd.h>

enum { API_DEFAULT_HANDLER = 306, KEPT_FROM = 1 << 17, GRAIN = 1 << 14, HUGE_PAGE = 1 << 21, LISTS = 64, STAGGER = 1 << 12, APART = 1088 };
enum { MORE = 1 << 23, CLEARED = 1 << 25, LOOKS_IN_A_LIST = 16 };
static const long IDLE = 10000000000L, LOOK_EVERY = 1000000000L;

/* NumPy's structures of NEP 49. */
typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} Allocator;

typedef struct {
    char name[127];
    unsigned char version;
    Allocator allocator;
} Handler;

/* A block of ``room`` bytes at ``base``: an array's, from ``start`` on, or a free one. */
typedef struct Block {
    char *base, *start; /* the latter is NULL in a free block */
    size_t room;
    long freed;                   /* when */
    int clean;                    /* has it never been used, so that it is zero and takes no memory? */
    struct Block *left, *right;   /* its neighbours in one mapping */
    struct Block *next, **link;   /* in its list, of free ones or of those of a bucket, and what links to it */
} Block;

static struct {
    pthread_mutex_t lock;
    Allocator before;
    Block *free[LISTS];     /* by the logarithm of their room, the last one first */
    Block **used;           /* buckets of a table by address */
    size_t buckets, blocks; /* how many, and how many blocks are in them */
    size_t in_use, most, kept, limit; /* bytes that arrays use, have used at once, that are kept, and may be */
    unsigned long reused, mapped;
    long looked; /* when for idle blocks */
    uintptr_t low, high; /* between which all blocks lie */
    int installed;
} Floor = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void
add_to_list(Block **list, Block *b)
{
    b->next = *list;
    b->link = list;
    if (b->next != NULL)
        b->next->link = &b->next;
    *list = b;
}

static void
take_from_list(Block *b)
{
    *b->link = b->next;
    if (b->next != NULL)
        b->next->link = b->link;
}

static inline int
list_of(size_t room)
{
    return 63 - __builtin_clzll((unsigned long long)room);
}

static void
add_free(Block *b)
{
    b->start = NULL;
    add_to_list(&Floor.free[list_of(b->room)], b);
    Floor.kept += b->clean ? 0 : b->room;
}

static void
take_free(Block *b)
{
    take_from_list(b);
    Floor.kept -= b->clean ? 0 : b->room;
}

static inline Block **
bucket_of(const void *start)
{
    return &Floor.used[((uintptr_t)start >> 12) * 0x9E3779B97F4A7C15ull >> 20 & (Floor.buckets - 1)];
}

/* Add an array's block to the table, which has a bucket for each; false if there is no memory for it. */
static int
add_used(Block *b)
{
    if (Floor.blocks >= Floor.buckets) {
        size_t before = Floor.buckets, buckets = before ? 2 * before : 256;
        Block **old = Floor.used, **table = calloc(buckets, sizeof(Block *));
        if (table == NULL)
            return 0;
        Floor.used = table;
        Floor.buckets = buckets;
        for (size_t k = 0; k < before; k++)
            for (Block *one = old[k], *next; one != NULL; one = next) {
                next = one->next;
                add_to_list(bucket_of(one->start), one);
            }
        free(old);
    }
    add_to_list(bucket_of(b->start), b);
    Floor.blocks++;
    Floor.in_use += b->room;
    Floor.most = Floor.in_use > Floor.most ? Floor.in_use : Floor.most;
    return 1;
}

static void
take_used(Block *b)
{
    take_from_list(b);
    Floor.blocks--;
    Floor.in_use -= b->room;
}

/* The block of an array; NULL if its memory is none of ours. */
static Block *
used_at(const void *start)
{
    if ((uintptr_t)start < Floor.low || (uintptr_t)start >= Floor.high)
        return NULL;
    for (Block *b = *bucket_of(start); b != NULL; b = b->next)
        if (b->start == start)
            return b;
    return NULL;
}

/* Add the right neighbour's room to a block. */
static void
absorb_right(Block *b)
{
    Block *other = b->right;
    b->room += other->room;
    b->right = other->right;
    if (b->right != NULL)
        b->right->left = b;
    free(other);
}

/* Divide a block: the room after the first bytes becomes a free block, if it is worth one. */
static void
divide(Block *b, size_t first)
{
    Block *rest = b->room - first < KEPT_FROM ? NULL : malloc(sizeof(Block));
    if (rest == NULL)
        return;
    *rest = (Block){.base = b->base + first, .room = b->room - first, .freed = b->freed, .clean = b->clean, .left = b, .right = b->right};
    if (rest->right != NULL)
        rest->right->left = rest;
    b->right = rest;
    b->room = first;
    add_free(rest);
}

/* Give a free block back to the system, and its neighbours that have never been used. */
static void
unmap_block(Block *b)
{
    take_free(b);
    while (b->right != NULL && b->right->start == NULL && b->right->clean) {
        take_free(b->right);
        absorb_right(b);
    }
    while (b->left != NULL && b->left->start == NULL && b->left->clean) {
        b = b->left;
        take_free(b);
        absorb_right(b);
    }
    munmap(b->base, b->room);
    if (b->left != NULL)
        b->left->right = NULL;
    if (b->right != NULL)
        b->right->left = NULL;
    free(b);
}

/* Give kept blocks back, those first that were freed first, until at most so many bytes are left, and none freed before. */
static void
give_back(size_t most, long before)
{
    for (;;) {
        Block *oldest = NULL;
        for (int k = 0; k < LISTS; k++)
            for (Block *b = Floor.free[k]; b != NULL; b = b->next)
                if (!b->clean && (oldest == NULL || b->freed < oldest->freed))
                    oldest = b;
        if (oldest == NULL || (Floor.kept <= most && oldest->freed >= before))
            return;
        unmap_block(oldest);
    }
}

/* Bytes that may be kept now. */
static size_t
most_kept(void)
{
    size_t room = Floor.most + Floor.most / 16 + MORE - Floor.in_use;
    return room < Floor.limit ? room : Floor.limit;
}

/* The smallest free block with so much room among those that are looked at. */
static Block *
find_free(size_t room)
{
    for (int k = list_of(room); k < LISTS; k++) {
        Block *block = NULL;
        int looks = LOOKS_IN_A_LIST;
        for (Block *b = Floor.free[k]; b != NULL && looks-- > 0; b = b->next)
            if (b->room >= room && (block == NULL || b->room < block->room || (b->room == block->room && block->clean)))
                block = b;
        if (block != NULL)
            return block;
    }
    return NULL;
}

/* A free block of fresh memory, of which so many bytes will be used. */
static Block *
map_block(size_t used)
{
    size_t room = (used + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    Block *b = malloc(sizeof(Block));
    char *mapped = b == NULL ? MAP_FAILED : mmap(NULL, room + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        free(b);
        return NULL;
    }
    size_t before = -(uintptr_t)mapped & (HUGE_PAGE - 1);
    char *base = mapped + before;
    if (before > 0)
        munmap(mapped, before);
    munmap(base + room, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    if (used >= HUGE_PAGE)
        madvise(base, used & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE); /* ordinary pages serve, too */
#endif
    *b = (Block){.base = base, .room = room, .clean = 1};
    Floor.low = Floor.low == 0 || (uintptr_t)base < Floor.low ? (uintptr_t)base : Floor.low;
    Floor.high = (uintptr_t)base + room > Floor.high ? (uintptr_t)base + room : Floor.high;
    Floor.mapped++;
    add_free(b);
    return b;
}

/* The room of an array's block.  Arrays that all start at a boundary of pages would compete for the same sets of a cache. */
static inline size_t
room_of(size_t wanted)
{
    return (wanted + STAGGER + GRAIN - 1) & ~(size_t)(GRAIN - 1);
}

/* Memory for an array, which is zero if that is asked for; NULL if there is none. */
static void *
take_memory(size_t wanted, int zeros)
{
    static size_t serial;
    size_t room = room_of(wanted);
    int clean = 1;
    char *start = NULL;
    pthread_mutex_lock(&Floor.lock);
    Block *b = find_free(room);
    if (b == NULL) { /* what is new takes the place of what was kept */
        size_t most = most_kept();
        give_back(most > room ? most - room : 0, 0);
        if ((b = map_block(room)) == NULL) {
            give_back(0, 0);
            b = map_block(room);
        }
    }
    else
        Floor.reused += !b->clean;
    if (b != NULL) {
        take_free(b);
        divide(b, room);
        b->start = b->base + (serial++ * APART % STAGGER & ~(size_t)63);
        if (add_used(b)) {
            start = b->start;
            clean = b->clean;
            b->clean = 0;
        }
        else
            add_free(b);
    }
    pthread_mutex_unlock(&Floor.lock);
    /* More is left to the system, which clears pages when they are touched: the program may touch few of them. */
    if (start != NULL && zeros && !clean && (wanted < CLEARED || madvise(b->base, room, MADV_DONTNEED) != 0))
        memset(start, 0, wanted);
    return start;
}

/* Keep the memory of an array that has died; false if it is none of ours. */
static int
keep_memory(void *start)
{
    if ((uintptr_t)start < __atomic_load_n(&Floor.low, __ATOMIC_RELAXED) || (uintptr_t)start >= __atomic_load_n(&Floor.high, __ATOMIC_RELAXED))
        return 0;
    pthread_mutex_lock(&Floor.lock);
    Block *b = used_at(start);
    int is_ours = b != NULL;
    if (is_ours) {
        take_used(b);
        b->freed = nanoseconds();
        if (b->right != NULL && b->right->start == NULL && !b->right->clean) {
            take_free(b->right);
            absorb_right(b);
        }
        if (b->left != NULL && b->left->start == NULL && !b->left->clean) {
            long freed = b->freed;
            b = b->left;
            take_free(b);
            b->freed = freed;
            absorb_right(b);
        }
        add_free(b);
        long before = b->freed - Floor.looked > LOOK_EVERY ? b->freed - IDLE : 0;
        Floor.looked = before ? b->freed : Floor.looked;
        if (before || Floor.kept > most_kept())
            give_back(most_kept(), before);
    }
    pthread_mutex_unlock(&Floor.lock);
    return is_ours;
}

static void *
floor_malloc(void *ctx, size_t size)
{
    void *start = size < KEPT_FROM || Floor.limit == 0 || size > PY_SSIZE_T_MAX / 2 ? NULL : take_memory(size, 0);
    return start != NULL ? start : Floor.before.malloc(ctx, size);
}

static void *
floor_calloc(void *ctx, size_t count, size_t each)
{
    void *start = NULL;
    if (each != 0 && count <= PY_SSIZE_T_MAX / 2 / each && count * each >= KEPT_FROM && Floor.limit != 0)
        start = take_memory(count * each, 1);
    return start != NULL ? start : Floor.before.calloc(ctx, count, each);
}

static void
floor_free(void *ctx, void *start, size_t size)
{
    if (start != NULL && !keep_memory(start))
        Floor.before.free(ctx, start, size);
}

/* Change the size of an array's block where it lies, or move its pages; false if neither can be done. */
static int
resize_block(Block *b, size_t size)
{
    size_t room = room_of(size);
    take_used(b);
    if (room > b->room) {
#ifdef MREMAP_MAYMOVE
        size_t offset = (size_t)(b->start - b->base);
        char *moved = mremap(b->base, b->room, room, MREMAP_MAYMOVE);
        if (moved != MAP_FAILED) {
            if (b->left != NULL)
                b->left->right = NULL;
            if (b->right != NULL)
                b->right->left = NULL;
            b->left = b->right = NULL;
            b->base = moved;
            b->start = moved + offset;
            b->room = room;
            Floor.low = (uintptr_t)moved < Floor.low ? (uintptr_t)moved : Floor.low;
            Floor.high = (uintptr_t)moved + room > Floor.high ? (uintptr_t)moved + room : Floor.high;
        }
#endif
    }
    else
        divide(b, room);
    add_used(b); /* there was a bucket for it */
    return b->room >= room;
}

static void *
floor_realloc(void *ctx, void *start, size_t size)
{
    void *moved = NULL;
    size_t had = 0;
    if (start != NULL) {
        pthread_mutex_lock(&Floor.lock);
        Block *b = used_at(start);
        if (b != NULL) {
            had = b->room - (size_t)(b->start - b->base);
            moved = size <= PY_SSIZE_T_MAX / 2 && resize_block(b, size) ? b->start : NULL;
        }
        pthread_mutex_unlock(&Floor.lock);
    }
    if (had == 0) /* memory of NumPy's stays so */
        return Floor.before.realloc(ctx, start, size);
    if (moved == NULL && (moved = floor_malloc(ctx, size)) != NULL) {
        memcpy(moved, start, size < had ? size : had);
        keep_memory(start);
    }
    return moved;
}

static void
lock_floor(void)
{
    pthread_mutex_lock(&Floor.lock);
}

static void
unlock_floor(void)
{
    pthread_mutex_unlock(&Floor.lock);
}

enum { DROPPED = 4 << 20 };

/* glibc gives the end of its heap back to the system, and so makes fresh pages of it again, whenever that is 128 kB, or twice
 * the largest block that has been freed.  Large arrays have memory of their own now; so one is freed here. */
static void
raise_heap_threshold(void)
{
    void *volatile large = malloc(DROPPED);
    free(large);
}

/* set_kept_memory(api, limit): keep at most so many bytes of NumPy's freed arrays; with zero, give all back, and keep none from now
 * on.  False if NumPy's handler is another one than this is made for. */
static PyObject *
set_kept_memory(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    Py_ssize_t limit;
    void **api;
    Handler *handler;
    if (!PyArg_ParseTuple(args, "On", &capsule, &limit) || (api = PyCapsule_GetPointer(capsule, NULL)) == NULL)
        return NULL;
    if (((unsigned (*)(void))api[API_VERSION])() != API_NUMPY_2 ||
        (handler = PyCapsule_GetPointer(*(PyObject **)api[API_DEFAULT_HANDLER], "mem_handler")) == NULL || handler->version != 1 ||
        strcmp(handler->name, "default_allocator") != 0 || GRAIN % sysconf(_SC_PAGESIZE) != 0) {
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    if (!Floor.installed) {
        if (pthread_atfork(lock_floor, unlock_floor, unlock_floor) != 0)
            Py_RETURN_FALSE;
        Floor.before = handler->allocator;
        Floor.installed = 1;
        raise_heap_threshold();
        handler->allocator.malloc = floor_malloc;
        handler->allocator.calloc = floor_calloc;
        handler->allocator.realloc = floor_realloc;
        handler->allocator.free = floor_free;
    }
    pthread_mutex_lock(&Floor.lock);
    Floor.limit = (size_t)limit;
    give_back(limit > 0 ? most_kept() : 0, 0);
    pthread_mutex_unlock(&Floor.lock);
    Py_RETURN_TRUE;
}

/* kept_memory(): bytes that arrays use, have used at once, and that are kept; how often kept memory was used, and mapped. */
static PyObject *
kept_memory(PyObject *module, PyObject *none)
{
    return Py_BuildValue("nnnkk", (Py_ssize_t)Floor.in_use, (Py_ssize_t)Floor.most, (Py_ssize_t)Floor.kept, Floor.reused, Floor.mapped);
}
#endif
