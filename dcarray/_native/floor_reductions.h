/* Reductions of small plain vectors by ufuncs, by their inner loops at once (dcarray/core/floor.py).
 *
 * `x.sum()`, `np.max(x)` and the like call the method `reduce` of a ufunc, whose C function is replaced: what NumPy does before and
 * after the loop takes longer than a loop over some hundred elements. */

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

/* Do the arguments ask for the reduction of a whole vector, and for nothing else? */
static int
is_plain_reduction(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
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
    return (given[AXIS] == NULL || given[AXIS] == Py_None || given[AXIS] == First || given[AXIS] == Last) &&
           (given[DTYPE] == NULL || given[DTYPE] == Py_None || given[DTYPE] == (PyObject *)((Array *)given[OF])->dtype) &&
           (given[INTO] == NULL || given[INTO] == Py_None) && (given[KEEPDIMS] == NULL || given[KEEPDIMS] == Py_False) &&
           (given[INITIAL] == NULL || given[INITIAL] == NoValue) && (given[WHERE] == NULL || given[WHERE] == Py_True);
}

/* The reduction of a small vector; NULL, without an exception, if NumPy is to do it. */
static PyObject *
reduce_by_loop(PyObject *ufunc, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    Array *a = (Array *)args[0];
    union {
        char bytes[16];
        double d;
        float f;
        long l;
    } r = {{0}};
    int kind = 0;
    if (Py_TYPE(a) != PlainClass || a->ndim != 1 || a->shape[0] < 1 || a->shape[0] > MOST || !is_known(a->dtype) || !(a->flags & ALIGNED))
        return NULL;
    while (kind < REDUCTIONS && Reductions[kind].ufunc != ufunc)
        kind++;
    char letter = a->dtype->type;
    if (kind == REDUCTIONS || strchr(Reductions[kind].letters, letter) == NULL || !is_plain_reduction(args, count, names))
        return NULL;
    Loop *loop = loop_of(ufunc, letter, letter);
    if (loop == NULL || loop->result != (PyObject *)a->dtype)
        return NULL;
    Py_ssize_t n = a->shape[0], strides[3] = {0, a->strides[0], 0};
    char *pointers[3] = {r.bytes, a->data, r.bytes};
    if (Reductions[kind].begins_with_first) {
        memcpy(r.bytes, a->data, Known[letter & 127].width);
        pointers[1] += strides[1];
        n--;
    }
    else if (letter == 'd')
        r.d = kind == 0 ? SumBegins : Reductions[kind].identity;
    else if (letter == 'f')
        r.f = kind == 0 ? (float)SumBegins : (float)Reductions[kind].identity;
    else if (letter == '?')
        r.bytes[0] = (char)Reductions[kind].identity;
    else
        r.l = Reductions[kind].identity;
    clear_flags();
    if (n > 0)
        loop->code(pointers, &n, strides, loop->data);
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
