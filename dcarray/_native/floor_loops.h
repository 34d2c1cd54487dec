/* NumPy's inner loops, shared by several threads (dcarray/core/floor.py).
 *
 * A ufunc calls one inner loop for the elements that lie at one stride.  The loops of a ufunc's tables are replaced by one that
 * lets the team of `shared_work.h` do pieces of a long run, where elements are independent of each other: outputs move, and
 * no input overlaps an output at another place.  So results have NumPy's bits.  The floating-point exceptions of all threads
 * are raised in the one that called, where NumPy looks for them. */

enum { PIECE = 1 << 14, LEAST_SHARED = 1 << 15, MOST_OPERANDS = 8, TRIED = 1 << 12 };
static const double LEAST_GAIN = 6e4; /* nanoseconds of work that are worth a second thread */

typedef struct {
    Inner *code;
    void *data;
    float cost; /* nanoseconds an element, as measured; 0: not yet */
    unsigned char inputs, outputs, widths[MOST_OPERANDS];
} SharedLoop;

typedef struct {
    SharedLoop *loop;
    char **args;
    const Py_ssize_t *steps;
    Py_ssize_t count, next;
    int flags;
} SharedRun;

static unsigned long SharedRuns;

/* Note that a loop took so long for so many elements.  The least counts: others include the first touch of memory. */
static inline void
note_cost(SharedLoop *l, long took, Py_ssize_t count)
{
    float cost = (float)took / (float)count + 1e-3f;
    if (l->cost == 0 || cost < l->cost)
        l->cost = cost;
}

/* Do the pieces of a run that nobody has begun. */
static void *
do_pieces(void *what)
{
    SharedRun *r = what;
    const SharedLoop *l = r->loop;
    char *at[MOST_OPERANDS];
    Py_ssize_t first, done = 0;
    long begun = nanoseconds();
    feclearexcept(FE_ALL_EXCEPT);
    while ((first = next_piece(&r->next, 1) * PIECE) < r->count) {
        Py_ssize_t count = r->count - first < PIECE ? r->count - first : PIECE;
        for (int k = 0; k < l->inputs + l->outputs; k++)
            at[k] = r->args[k] + first * r->steps[k];
        l->code(at, &count, r->steps, l->data);
        done += count;
    }
    if (done > 0)
        note_cost(r->loop, nanoseconds() - begun, done);
    note_flags(&r->flags, fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID));
    return NULL;
}

/* Are the elements of a run independent of each other? */
static int
is_independent(const SharedLoop *l, char **args, Py_ssize_t count, const Py_ssize_t *steps)
{
    for (int o = l->inputs; o < l->inputs + l->outputs; o++) {
        Py_ssize_t extent = steps[o] * (count - 1);
        char *low = args[o] + (extent < 0 ? extent : 0), *high = args[o] + (extent > 0 ? extent : 0) + l->widths[o];
        if (steps[o] < l->widths[o] && -steps[o] < l->widths[o])
            return 0;
        for (int k = 0; k < l->inputs + l->outputs; k++) {
            Py_ssize_t other = steps[k] * (count - 1);
            char *from = args[k] + (other < 0 ? other : 0), *to = args[k] + (other > 0 ? other : 0) + l->widths[k];
            if (k != o && from < high && low < to && !(args[k] == args[o] && steps[k] == steps[o] && l->widths[k] == l->widths[o] && k < l->inputs))
                return 0;
        }
    }
    return 1;
}

static void
shared_loop(char **args, const Py_ssize_t *dims, const Py_ssize_t *steps, void *data)
{
    SharedLoop *l = data;
    Py_ssize_t count = dims[0];
    if (count < TRIED || (l->cost != 0 && (count < LEAST_SHARED || l->cost * count < LEAST_GAIN))) {
        l->code(args, dims, steps, l->data);
        return;
    }
    if (l->cost == 0 || SharingThreads < 2 || !is_independent(l, args, count, steps)) {
        long begun = nanoseconds();
        l->code(args, dims, steps, l->data);
        note_cost(l, nanoseconds() - begun, count);
        return;
    }
    int before = fetestexcept(FE_ALL_EXCEPT);
    SharedRun r = {.loop = l, .args = args, .steps = steps, .count = count};
    Py_ssize_t pieces = (count + PIECE - 1) / PIECE;
    share_work(do_pieces, &r, pieces < SharingThreads ? (int)pieces : SharingThreads);
    SharedRuns++;
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(before | r.flags);
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
    if (t->nin + t->nout > MOST_OPERANDS || t->nout < 1 || t->ntypes < 1)
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
