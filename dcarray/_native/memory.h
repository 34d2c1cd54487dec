/* Memory of what NumPy makes at once, as long as it does everything; see call_sites.py.
 *
 * NumPy writes the result of `x * 2 + y` over the first product.  It cannot where a wrapped array holds that, so more
 * is made and dropped, and the C library gives large memory back to the system, to be cleared and mapped again.  So
 * what is dropped meanwhile is kept for what is made next.  All memory is from the handler that was in force (NEP 49),
 * and goes back to it; what is kept and what is in use are never more together than what was in use at once. */

typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} Allocator;

typedef struct {
    char name[127];
    uint8_t version;
    Allocator allocator;
} Handler; /* part of NumPy's C interface (PyDataMem_Handler) */

enum { API_SET_HANDLER = 304, API_GET_HANDLER = 305, API_DEFAULT_HANDLER = 306 }; /* in NumPy's table of functions */
enum { BLOCKS = 32, LEAST = 1 << 17 }; /* LEAST: bytes from which on memory is kept */

static PyObject *(*SetHandler)(PyObject *); /* NULL as long as no memory is to be kept */
static PyObject *(*GetHandler)(void);
static PyObject *UsualHandler, *KeeperHandler; /* NumPy's own handler, and dcarray's, as capsules */
static Allocator *Theirs;        /* what the former does */

static PyThread_type_lock Guard; /* NumPy does not promise that whoever calls has the interpreter's lock */
static struct {
    void *start;
    size_t size;
} Blocks[BLOCKS]; /* the longest unused first */
static int Idle;
static Py_ssize_t Held, Live, Peak; /* bytes that are kept; in use, more than when it began; and the most that were */

/* Take a block out; `Guard` is held. */
static void *
take_block(int k)
{
    void *start = Blocks[k].start;
    Held -= Blocks[k].size;
    memmove(Blocks + k, Blocks + k + 1, (--Idle - k) * sizeof(Blocks[0]));
    return start;
}

/* Give back what is not to be kept. */
static void
free_kept(int all)
{
    for (;;) {
        void *start = NULL;
        size_t size = 0;
        PyThread_acquire_lock(Guard, WAIT_LOCK);
        if (Idle && (all || Idle == BLOCKS || Held + Live > Peak)) {
            size = Blocks[0].size;
            start = take_block(0);
        }
        PyThread_release_lock(Guard);
        if (start == NULL)
            return;
        Theirs->free(Theirs->ctx, start, size);
    }
}

/* So much more is in use; a block of that size that was kept, or NULL. */
static void *
take_memory(size_t size, int again)
{
    void *start = NULL;
    PyThread_acquire_lock(Guard, WAIT_LOCK);
    for (int k = Idle - 1; again && k >= 0 && start == NULL; k--) /* what was used last may still be in a cache */
        if (Blocks[k].size == size)
            start = take_block(k);
    Live += size;
    Peak = Peak < Live ? Live : Peak;
    PyThread_release_lock(Guard);
    return start;
}

static inline int
is_kept_size(size_t size)
{
    return size >= LEAST && size <= PY_SSIZE_T_MAX / 4;
}

static void *
keeper_malloc(void *ctx, size_t size)
{
    void *start;
    if (!is_kept_size(size))
        return Theirs->malloc(Theirs->ctx, size);
    if ((start = take_memory(size, 1)) != NULL)
        return start;
    free_kept(!any_eager_period());
    start = Theirs->malloc(Theirs->ctx, size);
    if (start != NULL || !Idle)
        return start;
    free_kept(1);
    return Theirs->malloc(Theirs->ctx, size);
}

static void *
keeper_calloc(void *ctx, size_t count, size_t width)
{
    if (width && count <= PY_SSIZE_T_MAX / width && is_kept_size(count * width)) {
        take_memory(count * width, 0);
        free_kept(!any_eager_period());
    }
    return Theirs->calloc(Theirs->ctx, count, width);
}

static void *
keeper_realloc(void *ctx, void *start, size_t size)
{
    return Theirs->realloc(Theirs->ctx, start, size);
}

static void
keeper_free(void *ctx, void *start, size_t size)
{
    int now, kept = 0;
    if (start == NULL || !is_kept_size(size)) {
        Theirs->free(Theirs->ctx, start, size);
        return;
    }
    now = any_eager_period();
    PyThread_acquire_lock(Guard, WAIT_LOCK);
    Live -= size;
    if (now && Idle < BLOCKS) {
        Blocks[Idle].start = start;
        Blocks[Idle++].size = size;
        Held += size;
        kept = 1;
    }
    PyThread_release_lock(Guard);
    if (!kept)
        Theirs->free(Theirs->ctx, start, size);
    free_kept(!now);
}

static Handler Ours_handler = {
    "dcarray", 1, {NULL, keeper_malloc, keeper_calloc, keeper_realloc, keeper_free}};

/* NumPy begins to do everything at once in this context, unless the user has a handler for it. */
static void
keep_memory(void)
{
    PyObject *old = SetHandler == NULL ? NULL : GetHandler();
    if (old == UsualHandler) {
        Live = Peak = 0;
        Py_XDECREF(SetHandler(KeeperHandler));
    }
    PyErr_Clear(); /* of memory: none is kept */
    Py_XDECREF(old);
}

/* It does so no longer. */
static void
keep_no_memory(void)
{
    PyObject *old = SetHandler == NULL ? NULL : GetHandler();
    if (old != NULL && old == KeeperHandler)
        Py_XDECREF(SetHandler(UsualHandler));
    PyErr_Clear();
    Py_XDECREF(old);
    if (Idle)
        free_kept(1);
}

/* Find what is needed in NumPy's table of functions. */
static void
find_memory_functions(void **api)
{
    PyObject *usual = *(PyObject **)api[API_DEFAULT_HANDLER];
    Handler *theirs = PyCapsule_GetPointer(usual, "mem_handler");
    Guard = PyThread_allocate_lock();
    KeeperHandler = PyCapsule_New(&Ours_handler, "mem_handler", NULL);
    if (theirs != NULL && theirs->version == 1 && Guard != NULL && KeeperHandler != NULL) {
        UsualHandler = Py_NewRef(usual);
        Theirs = &theirs->allocator;
        GetHandler = (PyObject * (*)(void)) api[API_GET_HANDLER];
        SetHandler = (PyObject * (*)(PyObject *)) api[API_SET_HANDLER];
    }
    PyErr_Clear();
}

/* kept_memory(): bytes of freed arrays that are kept for new ones in an eager period. */
static PyObject *
kept_memory(PyObject *module, PyObject *unused)
{
    return PyLong_FromSsize_t(Held);
}
