/* Memory of what NumPy makes at once, as long as it does everything; see alone.py.
 *
 * NumPy writes the result of `x * 2 + y` over the first product.  It cannot where an array of ours holds that, so more
 * is made and dropped, and the C library gives large memory back to the system, to be cleared and mapped again.  So
 * what is dropped meanwhile is kept for what is made next.  All memory is from the handler that was in force (NEP 49),
 * and goes back to it; what is kept and what is in use are never more together than what was in use at once.
 * As soon as NumPy works at once somewhere, a little of it is kept at any time: arrays that the C library gives back
 * at each turn of a loop take ten times as long to have again as to fill.
 * Included where what it uses is declared. */

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
enum { BLOCKS = 32, LEAST = 1 << 17, LITTLE = 1 << 23 }; /* LEAST: bytes from which on memory is kept; LITTLE: and
                                                          * how many are kept where NumPy does not do everything */

static PyObject *(*SetHandler)(PyObject *); /* NULL as long as no memory is to be kept */
static PyObject *(*GetHandler)(void);
static PyObject *Usual, *Keeper; /* NumPy's own handler, and ours, as capsules */
static Allocator *Theirs;        /* what the former does */

static PyThread_type_lock Guard; /* NumPy does not promise that whoever calls has the interpreter's lock */
static struct {
    void *start;
    size_t size;
} Blocks[BLOCKS]; /* the longest unused first */
static int Idle;
static int Places_known; /* does NumPy work at once somewhere? */
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

/* How many bytes may be kept now. */
static Py_ssize_t
keepable(void)
{
    return all_at_once() ? PY_SSIZE_T_MAX : Places_known ? LITTLE : 0;
}

/* Give back what is not to be kept; of what is, so many bytes at most. */
static void
give_back(Py_ssize_t most)
{
    for (;;) {
        void *start = NULL;
        size_t size = 0;
        PyThread_acquire_lock(Guard, WAIT_LOCK);
        if (Idle && (Held > most || Idle == BLOCKS || Held + Live > Peak)) {
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
use(size_t size, int again)
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
counts(size_t size)
{
    return size >= LEAST && size <= PY_SSIZE_T_MAX / 4;
}

static void *
keeper_malloc(void *ctx, size_t size)
{
    void *start;
    if (!counts(size))
        return Theirs->malloc(Theirs->ctx, size);
    if ((start = use(size, 1)) != NULL)
        return start;
    give_back(keepable());
    start = Theirs->malloc(Theirs->ctx, size);
    if (start != NULL || !Idle)
        return start;
    give_back(0);
    return Theirs->malloc(Theirs->ctx, size);
}

static void *
keeper_calloc(void *ctx, size_t count, size_t width)
{
    if (width && count <= PY_SSIZE_T_MAX / width && counts(count * width)) {
        use(count * width, 0);
        give_back(keepable());
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
    int kept = 0;
    Py_ssize_t most;
    if (start == NULL || !counts(size)) {
        Theirs->free(Theirs->ctx, start, size);
        return;
    }
    most = keepable();
    PyThread_acquire_lock(Guard, WAIT_LOCK);
    Live -= size;
    if (size <= (size_t)most && Idle < BLOCKS) {
        Blocks[Idle].start = start;
        Blocks[Idle++].size = size;
        Held += size;
        kept = 1;
    }
    PyThread_release_lock(Guard);
    if (!kept)
        Theirs->free(Theirs->ctx, start, size);
    give_back(most);
}

static Handler Ours_handler = {
    "dcarray", 1, {NULL, keeper_malloc, keeper_calloc, keeper_realloc, keeper_free}};

/* NumPy begins to do everything, or something, at once in this context: memory is kept, unless the user has a handler
 * for it. */
static void
keep_memory(void)
{
    PyObject *old = SetHandler == NULL ? NULL : GetHandler();
    if (old == Usual) {
        Live = Peak = 0;
        Py_XDECREF(SetHandler(Keeper));
    }
    PyErr_Clear(); /* of memory: none is kept */
    Py_XDECREF(old);
}

/* It does not do everything any longer. */
static void
keep_no_memory(void)
{
    PyObject *old = SetHandler == NULL || Places_known ? NULL : GetHandler();
    if (old != NULL && old == Keeper)
        Py_XDECREF(SetHandler(Usual));
    PyErr_Clear();
    Py_XDECREF(old);
    if (Idle)
        give_back(keepable());
}

/* Find what is needed in NumPy's table of functions. */
static void
know_memory(void **api)
{
    PyObject *usual = *(PyObject **)api[API_DEFAULT_HANDLER];
    Handler *theirs = PyCapsule_GetPointer(usual, "mem_handler");
    Guard = PyThread_allocate_lock();
    Keeper = PyCapsule_New(&Ours_handler, "mem_handler", NULL);
    if (theirs != NULL && theirs->version == 1 && Guard != NULL && Keeper != NULL) {
        Usual = Py_NewRef(usual);
        Theirs = &theirs->allocator;
        GetHandler = (PyObject * (*)(void)) api[API_GET_HANDLER];
        SetHandler = (PyObject * (*)(PyObject *)) api[API_SET_HANDLER];
    }
    PyErr_Clear();
}

/* kept(): bytes */
static PyObject *
kept_bytes(PyObject *module, PyObject *unused)
{
    return PyLong_FromSsize_t(Held);
}

/* keep(some): is a little memory kept at any time, since NumPy does something at once? */
static PyObject *
keep_some(PyObject *module, PyObject *some)
{
    int yes = PyObject_IsTrue(some);
    if (yes < 0)
        return NULL;
    if (yes != Places_known && SetHandler != NULL) {
        Places_known = yes;
        if (yes)
            keep_memory();
        else if (!all_at_once())
            keep_no_memory();
    }
    Py_RETURN_NONE;
}
