/* Garbage is not collected in threads of this package's own (dcarray/core/uncollected.py), nor while compiled code has the program's
 * values.  The first threshold is out of reach meanwhile: whether collections are enabled is the program's own affair, which it reads
 * and sets, in other threads, too.  Explicit collections are done.  Should the program read the thresholds meanwhile, and set them
 * again later, the next release gives it its own first one back. */
static PyObject *GetThreshold, *SetThreshold; /* `gc.get_threshold`, `gc.set_threshold` */
static _Thread_local int Holds;               /* how often this thread holds collections back */
static int Holding;                           /* how many threads do, but for those that wait */
static long Threshold;                        /* the program's first one; if that is 0, the one before */

enum { OUT_OF_REACH = 0x7FFFFFFF };

static void
set_collections(int may)
{
    int collects = PyGC_Disable(); /* else what is made here could start one */
    PyObject *all = PyObject_CallNoArgs(GetThreshold), *number = NULL, *done = NULL;
    if (all != NULL) {
        long first = PyLong_AsLong(PyTuple_GET_ITEM(all, 0));
        long next = !may && first ? OUT_OF_REACH : may && first == OUT_OF_REACH ? Threshold : first;
        if (first && first != OUT_OF_REACH)
            Threshold = first;
        if (next != first && (number = PyLong_FromLong(next)) != NULL)
            done = PyObject_CallOneArg(SetThreshold, number);
    }
    Py_XDECREF(all);
    Py_XDECREF(number);
    Py_XDECREF(done);
    PyErr_Clear();
    if (collects)
        PyGC_Enable();
}

/* No thread starts a collection by itself until this one calls `may_collect` as often, or waits. */
static void
collect_nothing(void)
{
    if (Holds++ == 0 && Holding++ == 0)
        set_collections(0);
}

static void
may_collect(void)
{
    if (--Holds == 0 && --Holding == 0)
        set_collections(1);
}

/* hold_collections(): what `collect_nothing` does. */
static PyObject *
hold_collections(PyObject *module, PyObject *nothing)
{
    collect_nothing();
    Py_RETURN_NONE;
}

/* release_collections(): what `may_collect` does. */
static PyObject *
release_collections(PyObject *module, PyObject *nothing)
{
    may_collect();
    Py_RETURN_NONE;
}

/* forget_holds(): a child of a fork has none of the other threads. */
static PyObject *
forget_holds(PyObject *module, PyObject *nothing)
{
    Holding = Holds > 0;
    if (!Holding)
        set_collections(1);
    Py_RETURN_NONE;
}

/* Finalizers of garbage may use what is garbage with them, but weak references to it are dead before they run.  So a store that a
 * recording refers to weakly is none of the collector's objects, and dies with its last array.  One that a recording keeps alive is:
 * the two may be a cycle. */

/* weak(store): a weak reference to a store that is to be computed. */
static PyObject *
weak(PyObject *module, PyObject *store)
{
    PyObject_GC_UnTrack(store);
    return PyWeakref_NewRef(store, NULL);
}

/* kept(store): a store that a recording keeps alive. */
static PyObject *
kept(PyObject *module, PyObject *store)
{
    if (!PyObject_GC_IsTracked(store))
        PyObject_GC_Track(store);
    return Py_NewRef(store);
}
