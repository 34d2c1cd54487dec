/* Functions that make new arrays from numbers alone, like `zeros` and `arange`: small results by NumPy at once. */

enum { UNASKED = 1 << 24 }; /* elements: of more than these memory may be short */
enum { MUCH = 1 << 20 };    /* and of matrices: what was recorded before runs before there are as many */

/* A number in a sequence; NumPy's own float is one of Python's. */
static inline int
is_number(PyObject *x)
{
    return PyFloat_Check(x) || PyLong_CheckExact(x) || PyBool_Check(x) || PyComplex_CheckExact(x);
}

/* How many numbers there are in sequences of sequences of them; -1 if there is anything else. */
static double
numbers_in(PyObject *x, int depth)
{
    double all = 0;
    if (depth > 8 || (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)))
        return is_number(x) ? 1 : -1;
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(x); k++) {
        double some = numbers_in(PySequence_Fast_GET_ITEM(x, k), depth + 1);
        if (some < 0)
            return -1;
        all += some;
    }
    return all;
}

/* As a factor of what they say together; -1 if it is no plain integer, or less than it may be. */
static double
extent(PyObject *x, double least)
{
    double n = PyLong_CheckExact(x) ? PyLong_AsDouble(x) : -INFINITY;
    PyErr_Clear(); /* of what is too large for a double */
    return n < least ? -1 : fabs(n) > 1 ? fabs(n) : 1;
}

/* More elements than the result has, about; it may decline. */
static double
element_bound(int kind, PyObject *const *args, Py_ssize_t nargs)
{
    double most = 1;
    int sequence = PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0]);
    Py_ssize_t n = (kind == SHAPED || kind == UNWRITTEN) && sequence ? PySequence_Fast_GET_SIZE(args[0]) : nargs;
    PyObject *const *sizes = args;
    if (kind == LISTED)
        return nargs == 1 && sequence ? numbers_in(args[0], 0) : -1;
    if (kind == FILLED) {
        if (nargs != 2 || !is_number(args[1]))
            return -1;
        n = sequence ? PySequence_Fast_GET_SIZE(args[0]) : 1;
    }
    else if ((kind == SHAPED || kind == UNWRITTEN) && nargs != 1)
        return -1;
    if (sequence && kind != SHAPED && kind != UNWRITTEN && kind != FILLED)
        return -1;
    if (sequence)
        sizes = PySequence_Fast_ITEMS(args[0]);
    for (Py_ssize_t k = 0; k < n; k++) {
        double size = extent(sizes[k], kind == RANGED ? -INFINITY : 0);
        if (size < 0)
            return -1;
        most *= size;
    }
    return kind == SQUARE && n == 1 ? most * most : most;
}

/* Does this say a dtype, and nothing else? */
static int
is_dtype(PyObject *x)
{
    if (PyType_Check(x) || PyUnicode_CheckExact(x) || x == Py_None)
        return 1;
    for (const char *letter = "?bBhHiIlLqQefdFD"; *letter; letter++)
        if (x == Known[(int)*letter].dtype)
            return 1;
    return 0;
}

/* The dtype that this says, if it compiles, borrowed; it may decline. */
static PyObject *
dtype_argument(PyObject *x)
{
    if (x == NULL || x == Py_None || x == (PyObject *)&PyFloat_Type)
        return Known['d'].dtype;
    for (const char *letter = "?bBhHiIlLqQefdFD"; *letter; letter++) {
        PyObject *dtype = Known[(int)*letter].dtype;
        if (dtype != NULL && (x == dtype || x == (PyObject *)((Descr *)dtype)->scalar))
            return dtype;
    }
    return NULL;
}

/* A large array of a shape that nobody has written yet; it may decline. */
static PyObject *
make_uninitialised(PyObject *shape, PyObject *dtype)
{
    int sequence = PyTuple_CheckExact(shape) || PyList_CheckExact(shape);
    PyObject *sizes, *array = NULL;
    Py_ssize_t n = 1;
    if (dtype == NULL || !is_one_rank())
        return NULL;
    sizes = sequence ? PySequence_Tuple(shape) : PyTuple_Pack(1, shape);
    for (Py_ssize_t k = 0; sizes != NULL && n > 0 && k < PyTuple_GET_SIZE(sizes); k++) {
        Py_ssize_t one = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, k)); /* integers, as has been seen */
        n = one <= 0 || one > UNASKED / n ? 0 : n * one;
    }
    if (sizes != NULL && n > 0 && n >= eager_below() && PyTuple_GET_SIZE(sizes) <= SEEN)
        array = uninitialised(sizes, dtype, n);
    PyErr_Clear(); /* the slow way says it again */
    Py_XDECREF(sizes);
    return array;
}

/* The array, if it is a wrapped one (in C's order, with an axis); it may decline. */
static PyObject *
pass_through(PyObject *x, int kind)
{
    PyObject *a;
    if (Py_TYPE(x) != Wrapped)
        return NULL;
    if (kind == ITSELF)
        return Py_NewRef(x);
    a = small_array(x) != NULL ? small_array(x) : is_large(x) ? AT(x, View) : NULL;
    return a != NULL && Py_TYPE(a) == PlainClass && ((Array *)a)->ndim > 0 && (((Array *)a)->flags & IN_C_ORDER) ? Py_NewRef(x)
                                                                                                            : NULL;
}

/* The call in NumPy, its result wrapped, if it makes a small array, or NumPy makes such arrays at this place; it may decline. */
static PyObject *
make_small(PyObject *function, int kind, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    Py_ssize_t below, named = names == NULL ? 0 : PyTuple_GET_SIZE(names), first = nargs;
    PyObject *array;
    double most;
    int small;
    if (nargs < 1 || nargs > 3 || named > 1)
        return NULL;
    if (kind == ITSELF || kind == ROWWISE) {
        if (nargs != 1 || named != 0)
            return NULL;
        array = kind == ITSELF && Py_TYPE(args[0]) == PlainClass ? adopt_array(args[0]) : pass_through(args[0], kind);
        if (OnDevice && Py_TYPE(args[0]) == PlainClass) /* as it is known now; the slow way copies it there */
            Py_CLEAR(array);
        return array;
    }
    if (named == 1 && (PyUnicode_Compare(PyTuple_GET_ITEM(names, 0), DtypeName) != 0 || !is_dtype(args[nargs])))
        return NULL;
    if (named == 0 && kind != RANGED && kind != SQUARE && nargs == (kind == FILLED ? 3 : 2) &&
        is_dtype(args[nargs - 1]))
        first--; /* the dtype has its place */
    most = element_bound(kind, args, first);
    if (most < 0)
        return NULL;
    below = eager_below();
    if (OnDevice)
        return NULL;
    small = most < (double)below;
    PyErr_Clear();
    if (!small && kind == UNWRITTEN) {
        PyObject *dtype = named ? args[nargs] : first < nargs ? args[first] : NULL;
        return make_uninitialised(args[0], dtype_argument(dtype));
    }
    /* NumPy does this in any case; what it makes is large, but not so that much depends on who has it */
    small |= (kind == RANGED || kind == LISTED || kind == SQUARE) && below >= SmallLimit &&
             most < (kind == SQUARE ? MUCH : UNASKED) && is_one_rank();
    if (!small || (array = PyObject_Vectorcall(function, args, nargs, names)) == NULL)
        return NULL;
    if (Py_TYPE(array) == PlainClass && !usual_dtype(array)) /* arrays may be among its elements */
        Py_CLEAR(array);
    return array == NULL ? NULL : wrap_result(array);
}
