/* Reductions of small plain vectors, and of the rows of arrays, by the inner loops of ufuncs (dcarray/core/floor.py).
 *
 * `x.sum()`, `np.max(x)` and the like call the method `reduce` of a ufunc, whose C function is replaced: what NumPy does before and
 * after the loop takes longer than a loop over some hundred elements.  Of an array in C's order NumPy reduces one row after the
 * other, from its beginning, as is done here, but takes longer from one row to the next; and threads share many rows. */

typedef PyObject *ReduceMethod(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
typedef PyObject *ScalarMaker(void *, PyObject *, PyObject *);
enum { API_SCALAR = 60 };
enum { OF, AXIS, DTYPE, INTO, KEEPDIMS, INITIAL, WHERE, POSITIONS }; /* the places of arguments */
static ReduceMethod *ReduceUfunc; /* NumPy's own function */
static ScalarMaker *MakeScalar;   /* PyArray_Scalar */
static PyObject *NoValue;
static PyObject *First, *Last; /* 0 and -1, which Python has once */
static double SumBegins; /* with zero, or with the negative one */

/* What a ufunc begins with, the letters of dtypes, and whether that is the first element. */
static struct {
    const char *name, *letters;
    int identity, begins_with_first;
    PyObject *ufunc;
} Reductions[] = {{"add", "dlfL", 0, 0, NULL},        {"maximum", "dlfL", 0, 1, NULL},    {"minimum", "dlfL", 0, 1, NULL},
                  {"multiply", "dlfL", 1, 0, NULL},   {"logical_or", "?", 0, 0, NULL},    {"logical_and", "?", 1, 0, NULL}};
enum { REDUCTIONS = sizeof(Reductions) / sizeof(*Reductions) };

typedef union {
    char bytes[16];
    double d;
    float f;
    long l;
} Number;

/* Is this the last axis of an array, as a Python int? */
static int
is_last_axis(PyObject *axis, int ndim)
{
    return PyLong_CheckExact(axis) && (axis == Last || PyLong_AsLong(axis) == ndim - 1);
}

/* Do the arguments ask for the reduction of a vector, or of the rows of an array, and for nothing else?  `*keeps`: for one of which
 * the axis is kept. */
static int
is_plain_reduction(PyObject *const *args, Py_ssize_t count, PyObject *names, int *keeps)
{
    int ndim = ((Array *)args[0])->ndim;
    PyObject *given[POSITIONS] = {NULL};
    for (Py_ssize_t k = 0; k < count; k++)
        given[k] = args[k];
    for (Py_ssize_t k = 0; names != NULL && k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        int place = is_text(name, AxisName) ? AXIS : is_text(name, KeepdimsName) ? KEEPDIMS : is_text(name, WhereName) ? WHERE : OF;
        if (place == OF || given[place] != NULL)
            return 0;
        given[place] = args[count + k];
    }
    *keeps = given[KEEPDIMS] == Py_True;
    return (ndim == 1 ? !*keeps && (given[AXIS] == NULL || given[AXIS] == Py_None || given[AXIS] == First || given[AXIS] == Last)
                      : given[AXIS] != NULL && is_last_axis(given[AXIS], ndim)) &&
           (given[DTYPE] == NULL || given[DTYPE] == Py_None || given[DTYPE] == (PyObject *)((Array *)given[OF])->dtype ||
            (given[DTYPE] == (PyObject *)&PyBool_Type && ((Array *)given[OF])->dtype->type == '?')) &&
           (given[INTO] == NULL || given[INTO] == Py_None) && (given[KEEPDIMS] == NULL || given[KEEPDIMS] == Py_False || *keeps) &&
           (given[INITIAL] == NULL || given[INITIAL] == NoValue) && (given[WHERE] == NULL || given[WHERE] == Py_True);
}

/* What a reduction of elements of this dtype begins with, if that is not the first element. */
static void
begin_with(Number *r, int kind, char letter)
{
    if (letter == 'd')
        r->d = kind == 0 ? SumBegins : Reductions[kind].identity;
    else if (letter == 'f')
        r->f = kind == 0 ? (float)SumBegins : (float)Reductions[kind].identity;
    else if (letter == '?')
        r->bytes[0] = (char)Reductions[kind].identity;
    else
        r->l = Reductions[kind].identity;
}

typedef struct {
    Shared shared; /* rows */
    Inner *code;
    void *data;
    char *from, *into;
    int by_first, width;
    Py_ssize_t length, stride; /* of a row */
    Number begin;
} ReductionRun;

static void
reduce_rows(const Shared *shared, Py_ssize_t row, Py_ssize_t end)
{
    const ReductionRun *r = (const ReductionRun *)shared;
    for (; row < end; row++) {
        char *into = r->into + row * r->width, *from = r->from + row * r->length * r->width;
        char *pointers[3] = {into, from + r->by_first * r->stride, into};
        Py_ssize_t steps[3] = {0, r->stride, 0}, n = r->length - r->by_first;
        memcpy(into, r->by_first ? from : r->begin.bytes, r->width);
        if (n > 0)
            r->code(pointers, &n, steps, r->data);
    }
}

/* The reduction of the rows of an array in C's order; NULL, without an exception, if NumPy is to do it. */
static PyObject *
reduce_by_rows(Array *a, Loop *loop, ReductionRun *r, int keeps)
{
    Py_ssize_t n = elements_of((PyObject *)a), shape[MOST_AXES];
    int last = a->ndim - 1;
    if (a->ndim > MOST_AXES || !(a->flags & IN_C_ORDER) || n == 0 || r->length < 2)
        return NULL;
    memcpy(shape, a->shape, last * sizeof(Py_ssize_t));
    shape[last] = 1;
    PyObject *result = NewArray(PlainClass, Py_NewRef(a->dtype), keeps ? a->ndim : last, shape, NULL, NULL, 0, NULL);
    if (result == NULL) {
        PyErr_Clear();
        return NULL;
    }
    r->into = ((Array *)result)->data;
    r->stride = r->width;
    r->shared = (Shared){.work = reduce_rows, .items = n / r->length,
                         .piece = PIECE / (r->length + (Py_ssize_t)(ROW_TAKES / ELEMENT_TAKES)) + 1};
    clear_flags();
    if (r->shared.items * ROW_TAKES + (double)n * ELEMENT_TAKES < LEAST_GAIN)
        do_pieces(&r->shared);
    else {
        Py_INCREF(a);
        PyThreadState *state = PyEval_SaveThread();
        share_pieces(&r->shared);
        PyEval_RestoreThread(state);
        Py_DECREF(a);
    }
    clear_flags();
    if (r->shared.flags) { /* NumPy gives the warning, in its own words */
        loop->rest = REST;
        Py_CLEAR(result);
    }
    return result;
}

/* The reduction of a small vector, or of the rows of an array; NULL, without an exception, if NumPy is to do it. */
static PyObject *
reduce_by_loop(PyObject *ufunc, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Array *a = (Array *)args[0];
    Number total = {{0}};
    int kind = 0, keeps;
    if (Py_TYPE(a) != PlainClass || a->ndim < 1 || (a->ndim == 1 && (a->shape[0] < 1 || a->shape[0] > MOST)) || !is_known(a->dtype) ||
        !(a->flags & ALIGNED))
        return NULL;
    while (kind < REDUCTIONS && Reductions[kind].ufunc != ufunc)
        kind++;
    char letter = a->dtype->type;
    if (kind == REDUCTIONS || strchr(Reductions[kind].letters, letter) == NULL || !is_plain_reduction(args, count, names, &keeps))
        return NULL;
    Loop *loop = loop_of(ufunc, letter, letter);
    if (loop == NULL || loop->result != (PyObject *)a->dtype)
        return NULL;
    SharedLoop *own = loop->code == shared_loop ? loop->data : NULL;
    int last = a->ndim - 1;
    ReductionRun r = {.code = own ? own->code : loop->code, .data = own ? own->data : loop->data, .from = a->data, .into = total.bytes,
                      .by_first = Reductions[kind].begins_with_first, .width = Known[letter & 127].width, .length = a->shape[last],
                      .stride = a->strides[last]};
    begin_with(&r.begin, kind, letter);
    if (last > 0)
        return reduce_by_rows(a, loop, &r, keeps);
    clear_flags();
    reduce_rows(&r.shared, 0, 1);
    if (!fetestexcept(FLAGS))
        return MakeScalar(total.bytes, (PyObject *)a->dtype, NULL);
    loop->rest = REST;
    return NULL;
}

static PyObject *
call_reduce(PyObject *ufunc, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *result = count < 1 || count > POSITIONS ? NULL : reduce_by_loop(ufunc, args, count, names);
    return result != NULL || PyErr_Occurred() ? result : ReduceUfunc(ufunc, args, count, names);
}

/* reduce_by_loops(api, ufuncs, no_value, zero): from now on ufuncs reduce small vectors so; `no_value` is NumPy's mark of an argument that
 * is not given, and `zero` what a sum begins with.  False if NumPy's method is another one than this is made for. */
static PyObject *
reduce_by_loops(PyObject *module, PyObject *args)
{
    PyObject *capsule, *ufuncs, *no_value, *method, *add;
    void **api;
    if (!PyArg_ParseTuple(args, "OO!Od", &capsule, &PyDict_Type, &ufuncs, &no_value, &SumBegins) ||
        (api = PyCapsule_GetPointer(capsule, NULL)) == NULL)
        return NULL;
    add = PyDict_GetItemString(ufuncs, "add");
    method = add == NULL ? NULL : PyDict_GetItemString(Py_TYPE(add)->tp_dict, "reduce");
    if (NewArray == NULL || method == NULL || Py_TYPE(method) != &PyMethodDescr_Type || ReduceUfunc != NULL)
        Py_RETURN_FALSE;
    PyMethodDef *defined = ((PyMethodDescrObject *)method)->d_method;
    if (defined->ml_flags != (METH_FASTCALL | METH_KEYWORDS))
        Py_RETURN_FALSE;
    for (int kind = 0; kind < REDUCTIONS; kind++)
        Reductions[kind].ufunc = PyDict_GetItemString(ufuncs, Reductions[kind].name);
    NoValue = Py_NewRef(no_value);
    First = PyLong_FromLong(0);
    Last = PyLong_FromLong(-1);
    MakeScalar = (ScalarMaker *)api[API_SCALAR];
    ReduceUfunc = (ReduceMethod *)(void (*)(void))defined->ml_meth;
    defined->ml_meth = (PyCFunction)(void (*)(void))call_reduce;
    Py_RETURN_TRUE;
}
