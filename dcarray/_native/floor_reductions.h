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

/* Reduce a row into `into`, which holds what the reduction begins with. */
static inline void
reduce_row(Inner *code, void *data, int by_first, char *row, char *into, Py_ssize_t n, Py_ssize_t stride, int width)
{
    Py_ssize_t steps[3] = {0, stride, 0};
    char *pointers[3] = {into, row, into};
    if (by_first) {
        memcpy(into, row, width);
        pointers[1] += stride;
        n--;
    }
    if (n > 0)
        code(pointers, &n, steps, data);
}

typedef struct {
    Inner *code;
    void *data;
    Number begin;
    char *from, *into;
    int by_first, width, flags;
    Py_ssize_t rows, length, many, next; /* how many rows in each piece, and the first piece that nobody has begun */
} ReductionRun;

static void *
reduce_rows(void *what)
{
    ReductionRun *r = what;
    Py_ssize_t piece;
    feclearexcept(FE_ALL_EXCEPT);
    while ((piece = next_piece(&r->next, 1)) * r->many < r->rows)
        for (Py_ssize_t row = piece * r->many; row < r->rows && row < (piece + 1) * r->many; row++) {
            char *into = r->into + row * r->width;
            memcpy(into, r->begin.bytes, r->width);
            reduce_row(r->code, r->data, r->by_first, r->from + row * r->length * r->width, into, r->length, r->width, r->width);
        }
    note_flags(&r->flags, fetestexcept(FLAGS));
    return NULL;
}

/* The reduction of the rows of an array in C's order; NULL, without an exception, if NumPy is to do it. */
static PyObject *
reduce_by_rows(Array *a, Loop *loop, int kind, int keeps)
{
    Py_ssize_t n = elements_of((PyObject *)a), shape[MOST_AXES];
    int last = a->ndim - 1;
    SharedLoop *shared = loop->code == shared_loop ? loop->data : NULL;
    if (a->ndim > MOST_AXES || !(a->flags & IN_C_ORDER) || n == 0 || a->shape[last] < 2)
        return NULL;
    memcpy(shape, a->shape, last * sizeof(Py_ssize_t));
    shape[last] = 1;
    ReductionRun r = {.code = shared ? shared->code : loop->code, .data = shared ? shared->data : loop->data,
                      .from = a->data, .by_first = Reductions[kind].begins_with_first,
                      .width = Known[a->dtype->type & 127].width, .rows = n / a->shape[last], .length = a->shape[last]};
    begin_with(&r.begin, kind, a->dtype->type);
    r.many = PIECE / (r.length + (Py_ssize_t)(ROW_TAKES / ELEMENT_TAKES)) + 1;
    PyObject *made = NewArray(PlainClass, Py_NewRef(a->dtype), keeps ? a->ndim : last, shape, NULL, NULL, 0, NULL);
    if (made == NULL) {
        PyErr_Clear();
        return NULL;
    }
    r.into = ((Array *)made)->data;
    clear_flags();
    if (r.rows * ROW_TAKES + (double)n * ELEMENT_TAKES < LEAST_GAIN)
        reduce_rows(&r);
    else {
        Py_ssize_t pieces = (r.rows + r.many - 1) / r.many;
        Py_INCREF(a);
        PyThreadState *state = PyEval_SaveThread();
        share_work(reduce_rows, &r, pieces < SharingThreads ? (int)pieces : SharingThreads);
        SharedRuns += pieces > 1 && SharingThreads > 1;
        PyEval_RestoreThread(state);
        Py_DECREF(a);
    }
    clear_flags();
    if (r.flags) { /* NumPy gives the warning, in its own words */
        loop->rest = REST;
        Py_CLEAR(made);
    }
    return made;
}

/* The reduction of a small vector, or of the rows of an array; NULL, without an exception, if NumPy is to do it. */
static PyObject *
reduce_by_loop(PyObject *ufunc, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Array *a = (Array *)args[0];
    Number r = {{0}};
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
    if (a->ndim > 1)
        return reduce_by_rows(a, loop, kind, keeps);
    begin_with(&r, kind, letter);
    clear_flags();
    reduce_row(loop->code, loop->data, Reductions[kind].begins_with_first, a->data, r.bytes, a->shape[0], a->strides[0], Known[letter & 127].width);
    if (!fetestexcept(FLAGS))
        return MakeScalar(r.bytes, (PyObject *)a->dtype, NULL);
    loop->rest = REST;
    return NULL;
}

static PyObject *
call_reduce(PyObject *ufunc, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *made = count < 1 || count > POSITIONS ? NULL : reduce_by_loop(ufunc, args, count, names);
    return made != NULL || PyErr_Occurred() ? made : ReduceUfunc(ufunc, args, count, names);
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
