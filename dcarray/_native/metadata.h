/* Functions whose results are known from shapes and dtypes, sooner than NumPy's are called: the table of them, and what they
 * return. */

enum { ANSWERED = 64 }; /* places in the table: a power of two, several times as many as there are answers */
static struct {
    PyObject *function;
    int answer;
} Answered[ANSWERED];
static PyObject *Row, *Backwards; /* the keys of x[None, :] and x[::-1] */

/* Where a function is in the table, or would be. */
static inline int
answer_slot(PyObject *function)
{
    int k = (int)(((uintptr_t)function >> 4) % ANSWERED);
    while (Answered[k].function != NULL && Answered[k].function != function)
        k = (k + 1) % ANSWERED;
    return k;
}

/* Remember which functions are answered. */
static int
set_answers(PyObject *functions)
{
    Py_ssize_t n = PyTuple_GET_SIZE(functions);
    Row = Py_BuildValue("(ON)", Py_None, PySlice_New(NULL, NULL, NULL));
    Backwards = PySlice_New(NULL, NULL, PyLong_FromLong(-1));
    if (Row == NULL || Backwards == NULL)
        return -1;
    if (n != ANSWERS - 1) {
        PyErr_SetString(PyExc_ValueError, "other functions are answered here");
        return -1;
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        int at = answer_slot(PyTuple_GET_ITEM(functions, k));
        Answered[at].function = Py_NewRef(PyTuple_GET_ITEM(functions, k));
        Answered[at].answer = (int)k + 1;
    }
    return 0;
}

static inline int
axes_of(PyObject *x)
{
    PyObject *a = small_array(x);
    return a != NULL ? ((Array *)a)->ndim : (int)PyTuple_GET_SIZE(AT(x, Shape));
}

/* Has an array an axis of length one? */
static int
has_unit_axis(PyObject *x)
{
    PyObject *a = small_array(x);
    for (int k = 0; k < axes_of(x); k++)
        if ((a != NULL ? ((Array *)a)->shape[k] : PyLong_AsSsize_t(PyTuple_GET_ITEM(AT(x, Shape), k))) == 1)
            return 1;
    return 0;
}

/* The dtype of an array of whichever kind, borrowed; NULL of anything else. */
static Descr *
dtype_of(PyObject *x)
{
    PyObject *a = Py_TYPE(x) == PlainClass ? x : Py_TYPE(x) == Wrapped ? small_array(x) : NULL;
    if (a != NULL)
        return ((Array *)a)->dtype;
    return Py_TYPE(x) == Wrapped && is_large(x) ? (Descr *)LARGE_DTYPE(x) : NULL;
}

/* A large array of uninitialised memory, which it gets when somebody wants it, as `empty` of dcarray/recording/recorder.py. */
static PyObject *
uninitialised(PyObject *shape, PyObject *dtype, Py_ssize_t elements)
{
    PyObject *store = new_store(shape, dtype, elements), *x;
    x = store == NULL ? NULL : new_large(Wrapped, store, shape, Py_None, Py_False, Py_None, Py_None);
    Py_XDECREF(store);
    return x;
}

/* Is this memory of which nobody has written or wanted anything yet, as `Store.is_unused` says? */
static int
is_uninitialised(PyObject *x)
{
    PyObject *store = is_large(x) ? AT(x, Store) : NULL;
    return store != NULL && AT(store, Head) == Py_None && AT(store, Mem) == Py_None && AT(store, Recorded) == Py_None &&
           AT(store, Dirty) == Py_None && AT(store, Remote) == Py_None;
}

/* An array like a large one in C's order, of nothing yet; it may decline. */
static PyObject *
uninitialised_like(PyObject *x)
{
    PyObject *view = AT(x, View), *store = AT(x, Store), *array;
    Descr *dtype = dtype_of(x);
    Py_ssize_t size = size_of(x), below = eager_below();
    if (size < below || below < 0 || !is_known(dtype) || (store != NULL && AT(store, Head) != Py_None) || eager_array(x) != NULL)
        array = NULL;
    else if (view != NULL && Py_TYPE(view) == PlainClass ? !(((Array *)view)->flags & IN_C_ORDER)
                                                    : AT(x, Index) != Py_None || AT(store, Strides) != Py_None)
        array = NULL;
    else
        array = uninitialised(AT(x, Shape), (PyObject *)dtype, size);
    PyErr_Clear(); /* the slow way says it again */
    return array;
}

/* Copy all elements of a small array into another, if both lie alike and NumPy would not wait for others meanwhile. */
static PyObject *
copy_into(PyObject *x, PyObject *y)
{
    Array *a = (Array *)small_array(x), *b = Py_TYPE(y) == Wrapped ? (Array *)small_array(y) : Py_TYPE(y) == PlainClass ? (Array *)y : NULL;
    Py_ssize_t n;
    if (a == NULL || b == NULL || a->dtype != b->dtype || !is_known(a->dtype) || a->ndim != b->ndim ||
        (a->flags & (WRITEABLE | WARNS)) != WRITEABLE || !(a->flags & b->flags & IN_C_ORDER) ||
        memcmp(a->shape, b->shape, a->ndim * sizeof(Py_ssize_t)) != 0 || (n = elements_of((PyObject *)a)) > MOST)
        return NULL;
    memmove(a->data, b->data, n * Known[a->dtype->type & 127].width);
    Py_RETURN_NONE;
}

/* A new array like a small one in C's order, with its elements; it may decline. */
static PyObject *
copy_small(PyObject *x)
{
    Array *a = (Array *)small_array(x);
    Py_ssize_t n = elements_of((PyObject *)a);
    PyObject *r = NULL;
    if (NewArray != NULL && (a->flags & IN_C_ORDER) && a->ndim > 0 && is_known(a->dtype) && n <= MOST)
        r = NewArray(PlainClass, Py_NewRef((PyObject *)a->dtype), a->ndim, a->shape, NULL, NULL, 0, NULL);
    if (r == NULL) {
        PyErr_Clear();
        return NULL;
    }
    memcpy(((Array *)r)->data, a->data, n * Known[a->dtype->type & 127].width);
    return small_handle(r);
}

/* Numbers on which BLAS works as they are, with at least two along each axis. */
static inline int
for_blas(Array *a)
{
    if ((a->flags & (ALIGNED | IN_C_ORDER)) != (ALIGNED | IN_C_ORDER) || a->ndim < 1 || a->ndim > 2 ||
        (a->dtype->type != 'd' && a->dtype->type != 'f'))
        return 0;
    for (int k = 0; k < a->ndim; k++)
        if (a->shape[k] < 2)
            return 0;
    return 1;
}

/* `dot` of a vector and a vector or a matrix, for which it calls the same function of BLAS as `matmul`; it may decline. */
static PyObject *
dot_small(PyObject *x, PyObject *y)
{
    PyObject *p = numpy_operand(x), *q = p == NULL ? NULL : numpy_operand(y);
    if (q == NULL || Py_TYPE(p) != PlainClass || Py_TYPE(q) != PlainClass || ((Array *)p)->ndim + ((Array *)q)->ndim > 3 ||
        !for_blas((Array *)p) || !for_blas((Array *)q))
        return NULL;
    p = matmul_by_loop(p, q);
    return p == NULL ? NULL : wrap_result(p);
}

/* The answer to a function of these arguments alone; NULL, without an exception, if that is NumPy's to say. */
static PyObject *
answer_of(int answer, PyObject *const *args, Py_ssize_t n)
{
    PyObject *x = args[0];
    Descr *dtype;
    if (answer == RESULT_TYPE) {
        dtype = n == 2 ? dtype_of(args[0]) : NULL;
        return dtype != NULL && is_known(dtype) && dtype_of(args[1]) == dtype ? Py_NewRef((PyObject *)dtype) : NULL;
    }
    if (answer == DOT)
        return n == 2 ? dot_small(args[0], args[1]) : NULL;
    if (Py_TYPE(x) != Wrapped || (small_array(x) == NULL && !is_large(x)))
        return NULL;
    if (answer == COPYTO)
        return n == 2 ? copy_into(x, args[1]) : NULL;
    if (n != 1)
        return NULL;
    switch (answer) {
    case SHAPE: return fast_shape(x, NULL);
    case NDIM: return fast_ndim(x, NULL);
    case SIZE: return fast_size(x, NULL);
    case ISCOMPLEX:
    case ISREAL:
        dtype = dtype_of(x);
        return is_known(dtype) ? PyBool_FromLong((dtype->kind == 'c') == (answer == ISCOMPLEX)) : NULL;
    }
    if (small_array(x) == NULL && !is_one_rank())
        return NULL;
    switch (answer) {
    case AT_LEAST_1D: return axes_of(x) >= 1 ? Py_NewRef(x) : NULL;
    case AT_LEAST_2D: return axes_of(x) >= 2 ? Py_NewRef(x) : axes_of(x) == 1 ? fast_subscript(x, Row) : NULL;
    case SQUEEZE: return has_unit_axis(x) ? NULL : Py_NewRef(x);
    case TRANSPOSE: return fast_T_of_any(x, &attribute_T);
    case FLIP: return axes_of(x) == 1 ? fast_subscript(x, Backwards) : NULL;
    case REAL: return fast_real(x, &attribute_real);
    case IMAG: return fast_imag(x, &attribute_imag);
    case COPY: return small_array(x) != NULL ? copy_small(x) : NULL;
    case EMPTY_LIKE: return small_array(x) == NULL ? uninitialised_like(x) : NULL;
    }
    return NULL;
}

/* The result of any function whose result is known here; it may decline. */
static inline PyObject *
answer_function(PyObject *function, PyObject *const *args, Py_ssize_t n)
{
    int k = n == 1 || n == 2 ? answer_slot(function) : 0;
    return (n == 1 || n == 2) && Answered[k].function == function && function != NULL ? answer_of(Answered[k].answer, args, n)
                                                                                     : NULL;
}
