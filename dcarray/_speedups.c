/* The short way of small arrays, in C.
 *
 * A small array is a handle around a plain ndarray, and what an operator does with it is: take the plain
 * arrays out, let NumPy work, put the result into a new handle.  In Python that alone takes longer than
 * NumPy's own work on a thousand elements.  `install` puts functions into the type's slots that do it here, and
 * leave whatever is not so simple to the methods in `array.py`, which say what an operator means.  Without
 * this module (no C compiler where the package was built) those do everything.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

static PyTypeObject *Ours;  /* dcarray.ndarray; NULL as long as nothing is installed */
static PyTypeObject *Plain; /* numpy.ndarray */
static Py_ssize_t Small;    /* where a handle keeps its plain array: None for a large one */
static Py_ssize_t Limit;    /* results of so many elements may not count as small */
static PyObject *Wrap;      /* a function of a plain array: the handle, small or large */
static PyObject *Record;    /* a function of a ufunc's name and two operands: the handle, or None */
static PyObject *Scalars;   /* a tuple of types of which NumPy takes the instances as they are */
static PyObject *Ufunc;     /* the method __array_ufunc__ */
static PyObject *Size, *Call;

/* The plain array of a small one, or NULL. */
static inline PyObject *
plain(PyObject *x)
{
    PyObject *a;
    if (Py_TYPE(x) != Ours)
        return NULL;
    a = *(PyObject **)((char *)x + Small);
    return a != NULL && Py_TYPE(a) == Plain ? a : NULL;
}

/* The operand as NumPy can take it at once, or NULL. */
static inline PyObject *
at_hand(PyObject *x)
{
    PyTypeObject *t = Py_TYPE(x);
    if (t == Ours)
        return plain(x);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(Scalars); k++)
        if (t == (PyTypeObject *)PyTuple_GET_ITEM(Scalars, k))
            return x;
    return NULL;
}

/* A small array; takes over the reference to `a`. */
static PyObject *
handle(PyObject *a)
{
    PyObject *x = Ours->tp_alloc(Ours, 0);
    if (x == NULL) {
        Py_DECREF(a);
        return NULL;
    }
    *(PyObject **)((char *)x + Small) = a;
    return x;
}

/* NumPy's result as ours; takes over the reference. */
static PyObject *
ours(PyObject *r)
{
    PyObject *other;
    if (r == NULL)
        return NULL;
    if (Py_TYPE(r) == Plain) {
        PyObject *size = PyObject_GetAttr(r, Size);
        Py_ssize_t n = size == NULL ? -1 : PyLong_AsSsize_t(size);
        Py_XDECREF(size);
        if (n < 0) {
            Py_DECREF(r);
            return NULL;
        }
        if (n < Limit)
            return handle(r);
    }
    else if (!PyTuple_CheckExact(r))
        return r;
    other = PyObject_CallOneArg(Wrap, r);
    Py_DECREF(r);
    return other;
}

static inline int
number(PyObject *x)
{
    return PyFloat_CheckExact(x) || PyLong_CheckExact(x);
}

/* ---- operators --------------------------------------------------------------------------------- */
/* The methods of a binary operator, which Python's own slot function finds only where it is the slot itself,
 * and the name of its ufunc, if that is all there is to it. */
typedef struct {
    PyObject *forward, *reflected, *name;
} Methods;

static PyObject *
by_method(Methods *methods, PyObject *a, PyObject *b)
{
    PyObject *forth[2] = {a, b}, *back[2] = {b, a};
    if (methods->name != NULL && ((Py_TYPE(a) == Ours && Py_TYPE(b) == Ours) || number(a) || number(b))) {
        PyObject *three[3] = {methods->name, a, b}, *r = PyObject_Vectorcall(Record, three, 3, NULL);
        if (r != Py_None)
            return r;
        Py_DECREF(r);
    }
    if (PyObject_TypeCheck(a, Ours))
        return PyObject_Vectorcall(methods->forward, forth, 2, NULL);
    if (PyObject_TypeCheck(b, Ours))
        return PyObject_Vectorcall(methods->reflected, back, 2, NULL);
    Py_RETURN_NOTIMPLEMENTED;
}

static int
find_methods(Methods *methods, const char *forward, const char *reflected, const char *ufunc)
{
    if (*ufunc && (methods->name = PyUnicode_InternFromString(ufunc)) == NULL)
        return -1;
    methods->forward = PyObject_GetAttrString((PyObject *)Ours, forward);
    methods->reflected = PyObject_GetAttrString((PyObject *)Ours, reflected);
    return methods->forward == NULL || methods->reflected == NULL ? -1 : 0;
}

#define BINARY(slot, op, name, ufunc)                                                                \
    static Methods methods_##slot;                                                                   \
    static PyObject *fast_##slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                \
        PyObject *p = at_hand(a), *q = p == NULL ? NULL : at_hand(b);                                \
        return q == NULL ? by_method(&methods_##slot, a, b) : ours(op(p, q));                        \
    }
#define INPLACE(slot, op)                                                                            \
    static binaryfunc slow_##slot;                                                                   \
    static PyObject *fast_##slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                \
        PyObject *p = plain(a), *q = p == NULL ? NULL : at_hand(b), *r;                              \
        if (q == NULL)                                                                               \
            return slow_##slot(a, b);                                                                \
        r = op(p, q);                                                                                \
        if (r == NULL)                                                                               \
            return NULL;                                                                             \
        Py_DECREF(r);                                                                                \
        return Py_NewRef(a);                                                                         \
    }
#define UNARY(slot, op)                                                                              \
    static unaryfunc slow_##slot;                                                                    \
    static PyObject *fast_##slot(PyObject *a)                                                        \
    {                                                                                                \
        PyObject *p = plain(a);                                                                      \
        return p == NULL ? slow_##slot(a) : ours(op(p));                                             \
    }
#define BINARIES(X)                                                                                  \
    X(nb_add, PyNumber_Add, "add", "add")                                                            \
    X(nb_subtract, PyNumber_Subtract, "sub", "subtract")                                             \
    X(nb_multiply, PyNumber_Multiply, "mul", "multiply")                                             \
    X(nb_true_divide, PyNumber_TrueDivide, "truediv", "divide")                                      \
    X(nb_floor_divide, PyNumber_FloorDivide, "floordiv", "floor_divide")                             \
    X(nb_remainder, PyNumber_Remainder, "mod", "remainder")                                          \
    X(nb_matrix_multiply, PyNumber_MatrixMultiply, "matmul", "")                                     \
    X(nb_and, PyNumber_And, "and", "bitwise_and")                                                    \
    X(nb_or, PyNumber_Or, "or", "bitwise_or")                                                        \
    X(nb_xor, PyNumber_Xor, "xor", "bitwise_xor")                                                    \
    X(nb_lshift, PyNumber_Lshift, "lshift", "left_shift")                                            \
    X(nb_rshift, PyNumber_Rshift, "rshift", "right_shift")
#define INPLACES(X)                                                                                  \
    X(nb_inplace_add, PyNumber_InPlaceAdd)                                                           \
    X(nb_inplace_subtract, PyNumber_InPlaceSubtract)                                                 \
    X(nb_inplace_multiply, PyNumber_InPlaceMultiply)                                                 \
    X(nb_inplace_true_divide, PyNumber_InPlaceTrueDivide)                                            \
    X(nb_inplace_floor_divide, PyNumber_InPlaceFloorDivide)                                          \
    X(nb_inplace_remainder, PyNumber_InPlaceRemainder)                                               \
    X(nb_inplace_and, PyNumber_InPlaceAnd)                                                           \
    X(nb_inplace_or, PyNumber_InPlaceOr)                                                             \
    X(nb_inplace_xor, PyNumber_InPlaceXor)
#define UNARIES(X)                                                                                   \
    X(nb_negative, PyNumber_Negative)                                                                \
    X(nb_positive, PyNumber_Positive)                                                                \
    X(nb_absolute, PyNumber_Absolute)                                                                \
    X(nb_invert, PyNumber_Invert)

BINARIES(BINARY)
INPLACES(INPLACE)
UNARIES(UNARY)

static Methods methods_nb_power;
static PyObject *
fast_nb_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    PyObject *p, *q;
    if (modulus != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    p = at_hand(a);
    q = p == NULL ? NULL : at_hand(b);
    return q == NULL ? by_method(&methods_nb_power, a, b) : ours(PyNumber_Power(p, q, Py_None));
}

static richcmpfunc slow_compare;
static PyObject *
fast_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *p = plain(a), *q = p == NULL ? NULL : at_hand(b);
    return q == NULL ? slow_compare(a, b, op) : ours(PyObject_RichCompare(p, q, op));
}

/* ---- indexing ---------------------------------------------------------------------------------- */
/* Is there an array of ours among the indices? */
static int
mentions_ours(PyObject *key)
{
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(key); k++)
            if (PyObject_TypeCheck(PyTuple_GET_ITEM(key, k), Ours))
                return 1;
        return 0;
    }
    return PyObject_TypeCheck(key, Ours);
}

static binaryfunc slow_subscript;
static PyObject *
fast_subscript(PyObject *x, PyObject *key)
{
    PyObject *a = plain(x), *r;
    if (a == NULL || mentions_ours(key))
        return slow_subscript(x, key);
    r = PyObject_GetItem(a, key);
    if (r != NULL)
        return Py_TYPE(r) == Plain ? ours(r) : r;
    if (!PyErr_ExceptionMatches(PyExc_IndexError))
        return NULL;
    PyErr_Clear();
    return slow_subscript(x, key);
}

static objobjargproc slow_assign;
static int
fast_assign(PyObject *x, PyObject *key, PyObject *value)
{
    PyObject *a = plain(x), *b = a == NULL || value == NULL ? NULL : at_hand(value);
    if (b == NULL || mentions_ours(key))
        return slow_assign(x, key, value);
    if (PyObject_SetItem(a, key, b) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_IndexError))
        return -1;
    PyErr_Clear();
    return slow_assign(x, key, value);
}

/* ---- ufuncs ------------------------------------------------------------------------------------ */
/* __array_ufunc__(ufunc, method, *inputs, **kwargs) */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *given[6];
    if ((names == NULL || PyTuple_GET_SIZE(names) == 0) && (nargs == 3 || nargs == 4) &&
        PyUnicode_Check(args[1]) && PyUnicode_Compare(args[1], Call) == 0) {
        PyObject *p = at_hand(args[2]), *q = p == NULL || nargs == 3 ? p : at_hand(args[3]);
        if (q != NULL) {
            PyObject *operands[2] = {p, q};
            return ours(PyObject_Vectorcall(args[0], operands, nargs - 2, NULL));
        }
    }
    if (nargs < 6 && names == NULL) {
        given[0] = self;
        memcpy(given + 1, args, nargs * sizeof(PyObject *));
        return PyObject_Vectorcall(Ufunc, given, nargs + 1, NULL);
    }
    else {
        Py_ssize_t total = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
        PyObject *r, **all = PyMem_New(PyObject *, total + 1);
        if (all == NULL)
            return PyErr_NoMemory();
        all[0] = self;
        memcpy(all + 1, args, total * sizeof(PyObject *));
        r = PyObject_Vectorcall(Ufunc, all, nargs + 1, names);
        PyMem_Free(all);
        return r;
    }
}

static PyMethodDef ufunc_def = {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc,
                                METH_FASTCALL | METH_KEYWORDS, "NumPy's protocol for ufuncs."};

/* ---- windows ----------------------------------------------------------------------------------- */
/* (offset, stride, axis), which becomes that of a part that begins `start` further. */
static PyObject *
moved(PyObject *part, Py_ssize_t start)
{
    PyObject *triple;
    Py_ssize_t offset, stride;
    if (start == 0)
        return Py_NewRef(part);
    offset = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 0));
    stride = PyLong_AsSsize_t(PyTuple_GET_ITEM(part, 1));
    if (PyErr_Occurred())
        return NULL;
    triple = PyTuple_New(3);
    if (triple == NULL)
        return NULL;
    PyTuple_SET_ITEM(triple, 0, PyLong_FromSsize_t(offset + stride * start));
    PyTuple_SET_ITEM(triple, 1, Py_NewRef(PyTuple_GET_ITEM(part, 1)));
    PyTuple_SET_ITEM(triple, 2, Py_NewRef(PyTuple_GET_ITEM(part, 2)));
    return triple;
}

/* As `sliced` of window.py. */
static PyObject *
sliced(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t starts[32], n, given;
    PyObject *shape, *index, *key, *extents = NULL, *parts = NULL, *found;
    if (nargs != 3 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[2]) ||
        (args[1] != Py_None && !PyTuple_Check(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "a shape, an index and a tuple are wanted");
        return NULL;
    }
    shape = args[0], index = args[1], key = args[2];
    n = PyTuple_GET_SIZE(shape), given = PyTuple_GET_SIZE(key);
    if (n > 32 || given > n)
        Py_RETURN_NONE;
    for (Py_ssize_t k = 0; k < given; k++)
        if (!PySlice_Check(PyTuple_GET_ITEM(key, k)))
            Py_RETURN_NONE;
    extents = PyTuple_New(n);
    if (extents == NULL)
        return NULL;
    for (Py_ssize_t k = 0; k < n; k++) {
        Py_ssize_t stop, step, size, whole = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k));
        PyObject *extent;
        if (k >= given) {
            starts[k] = 0;
            PyTuple_SET_ITEM(extents, k, Py_NewRef(PyTuple_GET_ITEM(shape, k)));
            continue;
        }
        if ((whole == -1 && PyErr_Occurred()) || PySlice_Unpack(PyTuple_GET_ITEM(key, k), starts + k, &stop, &step) < 0)
            goto failed;
        size = PySlice_AdjustIndices(whole, starts + k, &stop, step);
        if (step != 1 || size <= 0) {
            Py_DECREF(extents);
            Py_RETURN_NONE;
        }
        extent = PyLong_FromSsize_t(size);
        if (extent == NULL)
            goto failed;
        PyTuple_SET_ITEM(extents, k, extent);
    }
    parts = PyTuple_New(index == Py_None ? n : PyTuple_GET_SIZE(index));
    if (parts == NULL)
        goto failed;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(parts); k++) {
        PyObject *part = index == Py_None ? Py_BuildValue("nin", starts[k], 1, k) : NULL;
        if (index != Py_None) {
            PyObject *old = PyTuple_GET_ITEM(index, k), *axis = PyTuple_GET_ITEM(old, 2);
            part = moved(old, axis == Py_None ? 0 : starts[PyLong_AsSsize_t(axis)]);
        }
        if (part == NULL)
            goto failed;
        PyTuple_SET_ITEM(parts, k, part);
    }
    found = PyTuple_Pack(2, extents, parts);
    Py_DECREF(extents);
    Py_DECREF(parts);
    return found;
failed:
    Py_DECREF(extents);
    Py_XDECREF(parts);
    return NULL;
}

/* ---- functions --------------------------------------------------------------------------------- */
/* What `shortened` makes of a function, which is `self`. */
static PyObject *
itself_or_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    return nargs == 1 && plain(args[0]) != NULL ? Py_NewRef(args[0]) : PyObject_Vectorcall(self, args, nargs, NULL);
}

static PyMethodDef evaluate_def = {"evaluate", (PyCFunction)(void (*)(void))itself_or_call, METH_FASTCALL, NULL};

static PyObject *
shortened(PyObject *module, PyObject *function)
{
    PyObject *doc = PyObject_GetAttrString(function, "__doc__"), *text;
    if (doc == NULL)
        return NULL;
    text = PyUnicode_FromFormat("evaluate(x=..., /, *more)\n--\n\n%S", doc);
    Py_DECREF(doc);
    if (text == NULL)
        return NULL;
    evaluate_def.ml_doc = PyUnicode_AsUTF8(text); /* the text is kept for good */
    return evaluate_def.ml_doc == NULL ? NULL : PyCFunction_New(&evaluate_def, function);
}

/* ---- the module -------------------------------------------------------------------------------- */
#define EXCHANGE(slot, op)                                                                           \
    slow_##slot = numbers->slot;                                                                     \
    numbers->slot = fast_##slot;
#define FIND(slot, op, name, ufunc) || find_methods(&methods_##slot, "__" name "__", "__r" name "__", ufunc)
#define REPLACE(slot, op, name, ufunc) numbers->slot = fast_##slot;

static PyObject *
install(PyObject *module, PyObject *args)
{
    PyObject *cls, *array, *wrap, *scalars, *record, *place, *method;
    Py_ssize_t limit;
    PyNumberMethods *numbers;
    PyMappingMethods *mapping;
    if (!PyArg_ParseTuple(args, "O!O!OnO!O", &PyType_Type, &cls, &PyType_Type, &array, &wrap, &limit,
                          &PyTuple_Type, &scalars, &record))
        return NULL;
    if (Ours != NULL)
        Py_RETURN_FALSE;
    if (!PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "a class made in Python is wanted");
        return NULL;
    }
    place = PyObject_GetAttrString(cls, "_small");
    if (place == NULL)
        return NULL;
    if (!Py_IS_TYPE(place, &PyMemberDescr_Type)) {
        Py_DECREF(place);
        PyErr_SetString(PyExc_TypeError, "_small is not a slot");
        return NULL;
    }
    Small = ((PyMemberDescrObject *)place)->d_member->offset;
    Py_DECREF(place);
    Ours = (PyTypeObject *)cls;
    Ufunc = PyObject_GetAttrString(cls, "__array_ufunc__");
    method = Ufunc == NULL ? NULL : PyDescr_NewMethod(Ours, &ufunc_def);
    if (method == NULL BINARIES(FIND) FIND(nb_power, , "pow", "") ||
        PyObject_SetAttrString(cls, "__array_ufunc__", method) < 0) {
        Py_XDECREF(method);
        Ours = NULL;
        return NULL;
    }
    Py_DECREF(method);
    Py_INCREF(cls);
    Limit = limit;
    Plain = (PyTypeObject *)Py_NewRef(array);
    Wrap = Py_NewRef(wrap);
    Scalars = Py_NewRef(scalars);
    Record = Py_NewRef(record);
    numbers = Ours->tp_as_number;
    BINARIES(REPLACE)
    REPLACE(nb_power, , "pow", "")
    INPLACES(EXCHANGE)
    UNARIES(EXCHANGE)
    mapping = Ours->tp_as_mapping;
    slow_subscript = mapping->mp_subscript;
    mapping->mp_subscript = fast_subscript;
    slow_assign = mapping->mp_ass_subscript;
    mapping->mp_ass_subscript = fast_assign;
    slow_compare = Ours->tp_richcompare;
    Ours->tp_richcompare = fast_compare;
    PyType_Modified(Ours);
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS,
     "install(cls, ndarray, wrap, limit, scalars, record): give the class `cls` of handles the short way; False\n"
     "if another class has it already."},
    {"sliced", (PyCFunction)(void (*)(void))sliced, METH_FASTCALL, "sliced(shape, index, key): as in `window`."},
    {"shortened", shortened, METH_O,
     "shortened(evaluate): the function, at once for a small array, which it gives back."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "dcarray._speedups", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    Size = PyUnicode_InternFromString("size");
    Call = PyUnicode_InternFromString("__call__");
    if (Size == NULL || Call == NULL)
        return NULL;
    return PyModule_Create(&definition);
}
