/* NumPy's inner loops, shared by several threads (dcarray/core/floor.py).
 *
 * A ufunc calls one inner loop for the elements that lie at one stride; a generalized one, such as those of `numpy.fft`, calls it for
 * many items of core dimensions.  The loops of a ufunc's tables are replaced by one that lets the threads of `thread_pool.h` do
 * pieces of a long run, where items are independent of each other: outputs move, and no input overlaps an output at another
 * place.  So results have NumPy's bits.  The floating-point exceptions of all threads are raised in the one that called, where
 * NumPy looks for them. */

enum { PIECE = 1 << 14, LEAST_SHARED = 1 << 15, MOST_OPERANDS = 8, MOST_CORE = 4, TRIED = 1 << 12 };
enum { ITEMS = 16, PIECES = 4 }; /* items that a loop takes together at most, as vectors; pieces of a generalized run for each thread */
static const double LEAST_GAIN = 6e4; /* nanoseconds of work that are worth a second thread */
static const double ROW_TAKES = 15, ELEMENT_TAKES = 0.3; /* nanoseconds, about: of a call of a loop, and of each element of a sum */

typedef struct {
    Inner *code;
    void *data;
    float cost; /* nanoseconds an element, as measured; 0: not yet */
    unsigned char inputs, outputs, widths[MOST_OPERANDS];
    const Tables *core; /* of a generalized ufunc; else NULL */
} SharedLoop;

/* Items that threads share in pieces: the head of what a piece needs. */
typedef struct Shared {
    void (*work)(const struct Shared *, Py_ssize_t, Py_ssize_t); /* on the items from the first number up to the second */
    SharedLoop *loop; /* whose cost is noted, if any */
    Py_ssize_t items, size, piece, next; /* all, the elements of each, how many in a piece, and the first one that nobody has begun */
    int flags;
} Shared;

typedef struct {
    Shared shared;
    char **args;
    const Py_ssize_t *dims, *steps;
} LoopRun;

static unsigned long SharedRuns;

/* Note that a loop took so long for so many elements.  The least counts: others include the first touch of memory. */
static inline void
note_cost(SharedLoop *l, long took, Py_ssize_t count)
{
    float cost = (float)took / (float)count + 1e-3f;
    if (l->cost == 0 || cost < l->cost)
        l->cost = cost;
}

/* Do the pieces that nobody has begun. */
static void *
do_pieces(void *what)
{
    Shared *r = what;
    Py_ssize_t first, done = 0;
    long begun = r->loop == NULL ? 0 : nanoseconds();
    feclearexcept(FE_ALL_EXCEPT);
    while ((first = next_piece(&r->next, r->piece)) < r->items) {
        Py_ssize_t end = r->items - first < r->piece ? r->items : first + r->piece;
        r->work(r, first, end);
        done += end - first;
    }
    if (done > 0 && r->loop != NULL)
        note_cost(r->loop, nanoseconds() - begun, done * r->size);
    note_flags(&r->flags, fetestexcept(FLAGS));
    return NULL;
}

static void
share_pieces(Shared *r)
{
    Py_ssize_t pieces = (r->items + r->piece - 1) / r->piece;
    int threads = pieces < SharingThreads ? (int)pieces : SharingThreads;
    share_work(do_pieces, r, threads);
    SharedRuns += threads > 1;
}

static void
do_loop(const Shared *shared, Py_ssize_t first, Py_ssize_t end)
{
    const LoopRun *r = (const LoopRun *)shared;
    const SharedLoop *l = shared->loop;
    char *at[MOST_OPERANDS];
    Py_ssize_t dims[1 + MOST_CORE] = {end - first};
    for (int d = 1; l->core != NULL && d <= l->core->core_num_dim_ix; d++)
        dims[d] = r->dims[d];
    for (int k = 0; k < l->inputs + l->outputs; k++)
        at[k] = r->args[k] + first * r->steps[k];
    l->code(at, dims, r->steps, l->data);
}

/* The memory of an operand's elements, from `*low` up to `*high`; do they lie apart from each other? */
static int
extent_of(const SharedLoop *l, int k, char **args, const Py_ssize_t *dims, const Py_ssize_t *steps, char **low, char **high)
{
    Py_ssize_t strides[1 + MOST_CORE] = {steps[k]}, sizes[1 + MOST_CORE] = {dims[0]}, reach = l->widths[k];
    int axes = 1, apart = 1;
    for (int d = 0; l->core != NULL && d < l->core->core_num_dims[k]; d++, axes++) {
        int place = l->core->core_offsets[k] + d;
        strides[axes] = steps[l->inputs + l->outputs + place];
        sizes[axes] = dims[1 + l->core->core_dim_ixs[place]];
    }
    *low = *high = args[k];
    for (int d = 0; d < axes; d++) {
        Py_ssize_t extent = strides[d] * (sizes[d] - 1);
        *(extent < 0 ? low : high) += extent;
        strides[d] = strides[d] < 0 ? -strides[d] : strides[d];
    }
    *high += l->widths[k];
    for (int left = axes; left > 0; left--) { /* the axis of the least stride is next */
        int next = -1;
        for (int d = 0; d < axes; d++)
            if (sizes[d] > 1 && (next < 0 || strides[d] < strides[next]))
                next = d;
        if (next < 0)
            break;
        apart = apart && strides[next] >= reach;
        reach += strides[next] * (sizes[next] - 1);
        sizes[next] = 1;
    }
    return apart;
}

/* Are the items of a run independent of each other?  An element of an output may be that of an input at the same place. */
static int
is_independent(const SharedLoop *l, char **args, const Py_ssize_t *dims, const Py_ssize_t *steps)
{
    for (int o = l->inputs; o < l->inputs + l->outputs; o++) {
        char *low, *high, *from, *to;
        if (!extent_of(l, o, args, dims, steps, &low, &high))
            return 0;
        for (int k = 0; k < l->inputs + l->outputs; k++) {
            int same = l->core == NULL && k < l->inputs && args[k] == args[o] && steps[k] == steps[o] && l->widths[k] == l->widths[o];
            extent_of(l, k, args, dims, steps, &from, &to);
            if (k != o && !same && from < high && low < to)
                return 0;
        }
    }
    return 1;
}

/* The most elements that an operand has for one item of a run. */
static Py_ssize_t
item_size(const SharedLoop *l, const Py_ssize_t *dims)
{
    Py_ssize_t most = 1;
    for (int k = 0; l->core != NULL && k < l->inputs + l->outputs; k++) {
        Py_ssize_t size = 1;
        for (int d = 0; d < l->core->core_num_dims[k]; d++)
            size *= dims[1 + l->core->core_dim_ixs[l->core->core_offsets[k] + d]];
        most = size > most ? size : most;
    }
    return most;
}

static void
shared_loop(char **args, const Py_ssize_t *dims, const Py_ssize_t *steps, void *data)
{
    SharedLoop *l = data;
    Py_ssize_t size = item_size(l, dims), count = dims[0] * size, piece = PIECE;
    if (count < TRIED || (l->cost != 0 && (count < LEAST_SHARED || l->cost * count < LEAST_GAIN))) {
        l->code(args, dims, steps, l->data);
        return;
    }
    if (l->core != NULL) { /* a loop may look up what it needs for all items of a piece: few pieces, as many items as vectors hold */
        piece = PIECE / size > dims[0] / (PIECES * SharingThreads) ? PIECE / size : dims[0] / (PIECES * SharingThreads);
        piece = (piece / ITEMS + 1) * ITEMS;
    }
    if (l->cost == 0 || SharingThreads < 2 || dims[0] <= piece || !is_independent(l, args, dims, steps)) {
        long begun = nanoseconds();
        l->code(args, dims, steps, l->data);
        note_cost(l, nanoseconds() - begun, count);
        return;
    }
    int before = fetestexcept(FE_ALL_EXCEPT);
    LoopRun r = {{.work = do_loop, .loop = l, .items = dims[0], .size = size, .piece = piece}, args, dims, steps};
    share_pieces(&r.shared);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(before | r.shared.flags);
}

/* Bytes of an element of NumPy's type numbers; 0: a loop of these is not shared. */
static int
type_width(char type)
{
    static const unsigned char widths[] = {
        1, 1, 1, 2, 2, 4, 4, sizeof(long), sizeof(long), 8, 8, 4, 8, sizeof(long double), 8, 16, 2 * sizeof(long double),
        0, 0, 0, 0, 8, 8, 2, /* object, strings, void; datetime64, timedelta64, float16 */
    };
    return (unsigned char)type < sizeof(widths) ? widths[(unsigned char)type] : 0;
}

/* Put shared loops into the tables of a ufunc; how many, -1 with an error. */
static int
share_loops_of(Tables *t)
{
    int count = 0;
    Inner **functions;
    void **data;
    if (t->nin + t->nout > MOST_OPERANDS || t->nout < 1 || t->ntypes < 1 || (t->core_enabled && t->core_num_dim_ix > MOST_CORE))
        return 0;
    functions = PyMem_Malloc(t->ntypes * sizeof(*functions));
    data = PyMem_Malloc(t->ntypes * sizeof(*data));
    if (functions == NULL || data == NULL)
        return -1;
    for (int k = 0; k < t->ntypes; k++) {
        const char *types = t->types + k * t->nargs;
        SharedLoop *l = PyMem_Calloc(1, sizeof(SharedLoop));
        int numeric = l != NULL;
        if (l == NULL)
            return -1;
        functions[k] = t->functions[k];
        data[k] = t->data == NULL ? NULL : t->data[k];
        for (int j = 0; j < t->nargs && numeric; j++)
            numeric = (l->widths[j] = (unsigned char)type_width(types[j])) > 0;
        if (!numeric || functions[k] == NULL || functions[k] == shared_loop) {
            PyMem_Free(l);
            continue;
        }
        l->code = functions[k];
        l->data = data[k];
        l->inputs = (unsigned char)t->nin;
        l->outputs = (unsigned char)t->nout;
        l->core = t->core_enabled ? t : NULL;
        functions[k] = shared_loop;
        data[k] = l;
        count++;
    }
    t->functions = functions; /* the old tables may be constants of NumPy's */
    t->data = data;
    return count;
}

/* share_loops(ufuncs, threads): let so many threads share the loops of these ufuncs, for as long as the process lives; how many
 * loops are shared that were not.  With one thread the loops do all themselves. */
static PyObject *
share_loops(PyObject *module, PyObject *args)
{
    PyObject *ufuncs;
    int threads;
    long count = 0;
    if (!PyArg_ParseTuple(args, "O!i", &PyTuple_Type, &ufuncs, &threads))
        return NULL;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(ufuncs); k++) {
        int more = share_loops_of((Tables *)PyTuple_GET_ITEM(ufuncs, k));
        if (more < 0)
            return PyErr_NoMemory();
        count += more;
    }
    SharingThreads = threads;
    return PyLong_FromLong(count);
}

static PyObject *
shared_runs(PyObject *module, PyObject *none)
{
    return PyLong_FromUnsignedLong(SharedRuns);
}
