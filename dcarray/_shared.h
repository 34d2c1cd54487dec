/* NumPy's inner loops over large arrays, without what a ufunc does before and after: where arrays have pushed that out
 * of the near cache it takes a microsecond.  And on the threads that kernels have, if there are any; see sharing.py.
 *
 * A loop of some ten microseconds is as long as it takes to wake a thread, so a sleeping one is woken only where such
 * calls come one after the other, and one that kept a call waiting is left out for a while: the pool (lowering/llvm)
 * sees to that.  Each element is what it would be anyway: only loops are shared of which every result is the exact one,
 * rounded, or no number at all.  Included where what it uses is declared. */

typedef int32_t Launched(void *, const void *);

/* Elements: what is shared, since of fewer a thread is sooner done than two agree; and of what loops are called here:
 * beside what more of them take, what a ufunc does before and after is nothing. */
enum { FEWEST = 1 << 16, LARGEST = 1 << 20 };
enum { ASIDE = 256 };

static PyObject *Sharing; /* a function of a number of threads: the pool's function and its address, or None */
static Launched *Launch;
static void *Pool; /* NULL if there is none, as far as is known */
static Py_ssize_t PoolThreads;
static int Waits; /* so often it is not asked for */

typedef struct {
    Inner *code;
    void *data;
    char *pointers[3];
    Py_ssize_t strides[3];
    int count;
} Work;

/* As the pool calls the phases of kernels: the elements from `first` on, before `last`. */
static int32_t
some_of(const int64_t *arguments, int64_t first, int64_t last)
{
    const Work *w = (const Work *)(intptr_t)arguments[0];
    Py_ssize_t n = last - first;
    char *pointers[3];
    for (int k = 0; k < w->count; k++)
        pointers[k] = w->pointers[k] + first * w->strides[k];
    w->code(pointers, &n, w->strides, w->data);
    return 0;
}

/* The child of a fork has no threads but the one. */
static void
share_no_more(void)
{
    Pool = NULL;
    Waits = 0;
}

/* Is there a pool of the threads that the options in force allow?  No exception is left. */
static int
pool_at_hand(void)
{
    PyObject *threads, *found;
    Py_ssize_t below = eager_below();
    if (below <= 0 || Threads < 2 || Sharing == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (Pool != NULL && PoolThreads == Threads)
        return 1;
    if (Waits > 0 && PoolThreads == Threads) {
        Waits--;
        return 0;
    }
    Pool = NULL;
    PoolThreads = Threads;
    Waits = ASIDE;
    threads = PyLong_FromSsize_t(Threads);
    found = threads == NULL ? NULL : PyObject_CallOneArg(Sharing, threads);
    if (found != NULL && PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2) {
        Launch = (Launched *)PyLong_AsVoidPtr(PyTuple_GET_ITEM(found, 0));
        Pool = PyLong_AsVoidPtr(PyTuple_GET_ITEM(found, 1));
    }
    if (PyErr_Occurred())
        Pool = NULL;
    PyErr_Clear();
    Py_XDECREF(threads);
    Py_XDECREF(found);
    return Pool != NULL;
}

/* What the loop makes of a large array, by all threads together if that can be; NULL, without an exception, where the
 * ufunc is to be called. */
static PyObject *
looped_long(Loop *loop, Array *like, Py_ssize_t n, char **pointers, Py_ssize_t *strides, PyObject *p, PyObject *q)
{
    static int32_t (*const phases[1])(const int64_t *, int64_t, int64_t) = {some_of};
    Work work = {.code = loop->code, .data = loop->data, .count = loop->second ? 3 : 2};
    int64_t packed[5] = {(int64_t)(intptr_t)phases, 1, n, 0, (int64_t)(intptr_t)&work};
    int shared = loop->exact && n >= FEWEST && pool_at_hand();
    PyObject *r = NewArray(Plain, Py_NewRef(loop->result), like->ndim, like->shape, NULL, NULL, 0, NULL);
    PyThreadState *state;
    int raised;
    if (r == NULL) {
        PyErr_Clear();
        return NULL;
    }
    pointers[work.count - 1] = ((Array *)r)->data;
    strides[work.count - 1] = Known[((Descr *)loop->result)->type & 127].width;
    for (int k = 0; k < work.count; k++) {
        work.pointers[k] = pointers[k];
        work.strides[k] = strides[k];
        packed[3] += strides[k] > 0 ? strides[k] : -strides[k];
    }
    packed[3] = packed[3] / 2 + 1; /* half as many units as bytes are moved */
    Py_INCREF(p);
    Py_XINCREF(q);
    if (fetestexcept(FLAGS))
        feclearexcept(FLAGS);
    state = PyEval_SaveThread();
    if (shared)
        raised = Launch(Pool, packed);
    else {
        some_of(packed + 4, 0, n);
        raised = fetestexcept(FLAGS);
    }
    PyEval_RestoreThread(state);
    Py_DECREF(p);
    Py_XDECREF(q);
    if (!raised && !PyErr_Occurred())
        return r;
    PyErr_Clear();
    loop->rest = REST;
    Py_DECREF(r);
    return NULL;
}

/* share_loops(function): where the pool is asked for */
static PyObject *
share_loops(PyObject *module, PyObject *function)
{
#ifndef _WIN32
    if (Sharing == NULL)
        pthread_atfork(NULL, NULL, share_no_more);
    Py_XSETREF(Sharing, Py_NewRef(function));
    share_no_more();
#endif
    Py_RETURN_NONE;
}
