/* The short way of small arrays, in C.
 *
 * A small array is a handle around a plain ndarray, and what an operator does with it is: take the plain
 * arrays out, let NumPy work, put the result into a new handle.  In Python that alone takes longer than
 * NumPy's own work on some hundred elements.  `install` puts functions into the type's slots that do it here,
 * and leave whatever is not so simple to the methods in `array.py`, which say what an operator means.  Slices
 * of large arrays are composed here too.  Without this module (no C compiler where the package was built)
 * Python does everything.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "_arrays.h"
#include "_logs.h"
#include "_windows.h"

static PyTypeObject *Ours;  /* dcarray.ndarray; NULL as long as nothing is installed */
static PyTypeObject *Plain; /* numpy.ndarray */
static Py_ssize_t Small;    /* where a handle keeps its plain array: None for a large one */
static Py_ssize_t Store, Shape, Index, Readonly, View, Little; /* what else it keeps; see handle.py */
static Py_ssize_t Origin;
static Py_ssize_t Head, Used, Dirty, Char, Mem; /* in a store; see store.py */
static Py_ssize_t Done;                    /* in a recording */
static PyObject *Current;                  /* a function: the options in force */
static Py_ssize_t Limit;    /* results of so many elements may not count as small */
static PyObject *Wrap;      /* a function of a plain array: the handle, small or large */
static PyObject *Record;    /* a function of a ufunc's name and two operands: the handle, or None */
static PyObject *Assign;    /* a function of a target and a value: True, or False if it is not for it */
static PyObject *Scalars;   /* a tuple of types of which NumPy takes the instances as they are */
static PyObject *Ufunc;     /* the method __array_ufunc__ */
static PyObject *Call, *Out, *Below, *ShapeName;

#define AT(x, place) (*(PyObject **)((char *)(x) + (place)))

/* The plain array of a small one, or NULL. */
static inline PyObject *
plain(PyObject *x)
{
    PyObject *a;
    if (Py_TYPE(x) != Ours)
        return NULL;
    a = AT(x, Small);
    return a != NULL && Py_TYPE(a) == Plain ? a : NULL;
}

/* Has this recording run? */
static inline int
idle(PyObject *rec)
{
    return rec == NULL || rec == Py_None || AT(rec, Done) == Py_True;
}

/* Is nothing pending on the memory of a large array? */
static inline int
clean(PyObject *x)
{
    PyObject *store = AT(x, Store), *head = AT(store, Head);
    if (head == NULL || head == Py_None)
        head = store;
    return idle(AT(head, Used)) && idle(AT(head, Dirty));
}

/* As `plain`, or the little window of a large array on which nothing is pending.  What NumPy makes of it must
 * not be a view of it. */
static inline PyObject *
quiet(PyObject *x)
{
    PyObject *a = plain(x);
    if (a == NULL && Py_TYPE(x) == Ours) {
        a = AT(x, Little);
        if (a != NULL && (Py_TYPE(a) != Plain || !clean(x)))
            a = NULL;
    }
    return a;
}

/* The operand as NumPy can take it at once, or NULL. */
static inline PyObject *
at_hand(PyObject *x)
{
    PyTypeObject *t = Py_TYPE(x);
    if (t == Ours)
        return quiet(x);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(Scalars); k++)
        if (t == (PyTypeObject *)PyTuple_GET_ITEM(Scalars, k))
            return x;
    return NULL;
}

/* An attribute that is a number of elements; -1 with an exception. */
static Py_ssize_t
number_in(PyObject *x, PyObject *name)
{
    PyObject *value = x == NULL ? NULL : PyObject_GetAttr(x, name);
    Py_ssize_t n = value == NULL ? -1 : PyLong_AsSsize_t(value);
    Py_XDECREF(value);
    return n;
}

/* Is the result of two operands at hand so large that it is better recorded? */
static inline int
grows(PyObject *p, PyObject *q)
{
    return Py_TYPE(p) == Plain && Py_TYPE(q) == Plain && spread(p, q, 2 * Limit);
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
    AT(x, Small) = a;
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
        if (elements_of(r) < Limit)
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
        return q == NULL || grows(p, q) ? by_method(&methods_##slot, a, b) : ours(op(p, q));         \
    }
#define INPLACE(slot, op)                                                                            \
    static binaryfunc slow_##slot;                                                                   \
    static PyObject *fast_##slot(PyObject *a, PyObject *b)                                           \
    {                                                                                                \
        PyObject *p = quiet(a), *q = p == NULL ? NULL : at_hand(b), *r;                              \
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
        PyObject *p = quiet(a);                                                                      \
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
    return q == NULL || grows(p, q) ? by_method(&methods_nb_power, a, b) : ours(PyNumber_Power(p, q, Py_None));
}

static richcmpfunc slow_compare;
static PyObject *
fast_compare(PyObject *a, PyObject *b, int op)
{
    PyObject *p = quiet(a), *q = p == NULL ? NULL : at_hand(b);
    return q == NULL || grows(p, q) ? slow_compare(a, b, op) : ours(PyObject_RichCompare(p, q, op));
}

/* ---- windows ----------------------------------------------------------------------------------- */
/* A large array on the memory of `x` of which the window is still to be set; takes over the reference to
 * `shape`.  `view` and `small` are its plain view and the one on which NumPy is to work, or None. */
static PyObject *
sharing(PyObject *x, PyObject *shape, PyObject *view, PyObject *small)
{
    PyObject *y = Ours->tp_alloc(Ours, 0);
    if (y == NULL) {
        Py_DECREF(shape);
        return NULL;
    }
    AT(y, Small) = Py_NewRef(Py_None);
    AT(y, Store) = Py_NewRef(AT(x, Store));
    AT(y, Shape) = shape;
    AT(y, Readonly) = Py_NewRef(AT(x, Readonly));
    AT(y, View) = Py_NewRef(view);
    AT(y, Little) = Py_NewRef(small);
    return y;
}

/* A part of `x`, a large array; NULL without an exception if the key or its result is not of the usual kind:
 * many elements selected by slices. */
static PyObject *
windowed(PyObject *x, PyObject *key)
{
    PyObject *whole_shape, *whole_index, *shape, *index, *y, **slices = &key;
    Py_ssize_t given = 1, elements;
    if (Py_TYPE(x) != Ours || AT(x, Small) != Py_None || AT(x, Index) == NULL)
        return NULL;
    if (PyTuple_CheckExact(key)) {
        slices = &PyTuple_GET_ITEM(key, 0);
        given = PyTuple_GET_SIZE(key);
    }
    if (given == 0)
        return NULL;
    whole_shape = Py_NewRef(AT(x, Shape)); /* the slices may hold objects that run any code */
    whole_index = Py_NewRef(AT(x, Index));
    elements = select_part(whole_shape, whole_index, slices, given, &shape, &index);
    Py_DECREF(whole_shape);
    Py_DECREF(whole_index);
    if (elements <= 0) {
        PyErr_Clear(); /* NumPy says it in its own words */
        return NULL;
    }
    if (elements < Limit && (AT(x, View) != Py_None || AT(AT(x, Store), Mem) != Py_None)) {
        /* NumPy may be to work on it */
        Py_DECREF(shape);
        Py_DECREF(index);
        return NULL;
    }
    y = sharing(x, shape, Py_None, Py_None);
    if (y == NULL) {
        PyErr_Clear();
        Py_DECREF(index);
        return NULL;
    }
    AT(y, Index) = index;
    return y;
}

/* Is this basic indexing, as far as the types tell? */
static int
basic(PyObject *key)
{
    PyObject **keys = &key;
    Py_ssize_t n = 1;
    if (PyTuple_CheckExact(key)) {
        keys = &PyTuple_GET_ITEM(key, 0);
        n = PyTuple_GET_SIZE(key);
    }
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *one = keys[k];
        if (!PyLong_CheckExact(one) && !PySlice_Check(one) && one != Py_None && one != Py_Ellipsis)
            return 0;
    }
    return 1;
}

/* Is a view so small that NumPy is to work on it?  -1 with an exception. */
static int
little(PyObject *view)
{
    PyObject *options = PyObject_CallNoArgs(Current);
    Py_ssize_t below = number_in(options, Below);
    Py_XDECREF(options);
    return below < 0 ? -1 : elements_of(view) < below;
}

/* The part of `x`, a large array with a view of its memory, of which `view` is the view; as in handle.py. */
static PyObject *
part_of(PyObject *x, PyObject *key, PyObject *view)
{
    PyObject *shape = PyObject_GetAttr(view, ShapeName), *origin = PyTuple_Pack(2, x, key), *y = NULL;
    int small = shape == NULL || origin == NULL ? -1 : little(view);
    if (small < 0) {
        Py_XDECREF(shape);
        Py_XDECREF(origin);
        return NULL;
    }
    y = sharing(x, shape, view, small ? view : Py_None);
    if (y == NULL)
        Py_DECREF(origin);
    else
        AT(y, Origin) = origin;
    return y;
}

/* May NumPy look at the memory of `x`, a large array, by this key? */
static inline int
has_view(PyObject *x, PyObject *key)
{
    if (Py_TYPE(x) != Ours || AT(x, Small) != Py_None || AT(x, View) == NULL)
        return 0;
    return Py_TYPE(AT(x, View)) == Plain && basic(key);
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

static PyObject *Getitem; /* the method __getitem__ */

static PyObject *
slow_subscript(PyObject *x, PyObject *key)
{
    PyObject *both[2] = {x, key};
    return PyObject_Vectorcall(Getitem, both, 2, NULL);
}

static PyObject *
fast_subscript(PyObject *x, PyObject *key)
{
    PyObject *a = plain(x), *r;
    if (a == NULL && (r = windowed(x, key)) != NULL)
        return r;
    if (a == NULL && has_view(x, key)) {
        PyObject *view = PyObject_GetItem(AT(x, View), key);
        if (view == NULL)
            return NULL;
        if (Py_TYPE(view) != Plain && clean(x))
            return view; /* an element */
        r = Py_TYPE(view) == Plain ? part_of(x, key, view) : slow_subscript(x, key);
        Py_DECREF(view);
        return r;
    }
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

/* Python's interpreter would call a method written in Python without a look at the slot. */
static PyMethodDef getitem_def = {"__getitem__", fast_subscript, METH_O, "See `numpy.ndarray.__getitem__`."};

static objobjargproc slow_assign;
static int
fast_assign(PyObject *x, PyObject *key, PyObject *value)
{
    PyObject *a = plain(x), *b, *part;
    if (value == NULL)
        return slow_assign(x, key, value);
    if (Py_TYPE(value) == Ours && (part = windowed(x, key)) != NULL) {
        PyObject *both[2] = {part, value}, *r = PyObject_Vectorcall(Assign, both, 2, NULL);
        int done = r == NULL ? -1 : PyObject_IsTrue(r);
        Py_DECREF(part);
        Py_XDECREF(r);
        if (done)
            return done < 0 ? -1 : 0;
    }
    b = PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) ? value : at_hand(value);
    if (a == NULL && b != NULL && has_view(x, key) && clean(x) && AT(x, Readonly) == Py_False) {
        PyObject *whole = AT(x, View), *view;
        int done;
        if (PyUnicode_GET_LENGTH(AT(AT(x, Store), Char)) == 0) /* nothing is ever recorded on it */
            return b == value ? PyObject_SetItem(whole, key, b) : slow_assign(x, key, value);
        view = PyObject_GetItem(whole, key);
        if (view != NULL && Py_TYPE(view) != Plain) /* an element */
            done = PyObject_SetItem(whole, key, b) < 0 ? -1 : 1;
        else if ((done = view == NULL ? -1 : little(view)) > 0)
            done = PyObject_SetItem(view, Py_Ellipsis, b) < 0 ? -1 : 1;
        Py_XDECREF(view);
        if (done)
            return done < 0 ? -1 : 0;
    }
    if (a == NULL || b == NULL || mentions_ours(key))
        return slow_assign(x, key, value);
    if (PyObject_SetItem(a, key, b) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_IndexError))
        return -1;
    PyErr_Clear();
    return slow_assign(x, key, value);
}

#define FEW 8 /* arguments that need no memory of their own */

/* ---- ufuncs ------------------------------------------------------------------------------------ */
/* A call with keywords, one of which is `out`, if all in it is at hand; NULL without an exception if not. */
static PyObject *
into_out(PyObject *ufunc, PyObject *p, PyObject *q, PyObject *const *values, PyObject *names)
{
    PyObject *given[FEW], *out = NULL, *r;
    Py_ssize_t inputs = q == NULL ? 1 : 2, more = PyTuple_GET_SIZE(names);
    if (inputs + more > FEW)
        return NULL;
    given[0] = p;
    given[1] = q;
    for (Py_ssize_t k = 0; k < more; k++) {
        PyObject *value = values[k];
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, k), Out) == 0) {
            if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) != 1)
                return NULL;
            out = PyTuple_GET_ITEM(value, 0);
            value = quiet(out);
            if (value == NULL)
                return NULL;
        }
        else if (!PyUnicode_CheckExact(value) && !PyType_Check(value))
            return NULL;
        given[inputs + k] = value;
    }
    if (out == NULL)
        return NULL;
    r = PyObject_Vectorcall(ufunc, given, inputs, names);
    Py_XDECREF(r);
    return r == NULL ? NULL : Py_NewRef(out);
}

/* __array_ufunc__(ufunc, method, *inputs, **kwargs) */
static PyObject *
array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *few[FEW], **all, *r;
    Py_ssize_t total;
    if ((nargs == 3 || nargs == 4) && PyUnicode_Check(args[1]) && PyUnicode_Compare(args[1], Call) == 0) {
        PyObject *p = at_hand(args[2]), *q = p == NULL || nargs == 3 ? NULL : at_hand(args[3]);
        if (p != NULL && (nargs == 3 || (q != NULL && !grows(p, q)))) {
            PyObject *operands[2] = {p, q};
            if (names == NULL || PyTuple_GET_SIZE(names) == 0)
                return ours(PyObject_Vectorcall(args[0], operands, nargs - 2, NULL));
            r = into_out(args[0], p, q, args + nargs, names);
            if (r != NULL || PyErr_Occurred())
                return r;
        }
    }
    total = nargs + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    all = total < FEW ? few : PyMem_New(PyObject *, total + 1);
    if (all == NULL)
        return PyErr_NoMemory();
    all[0] = self;
    memcpy(all + 1, args, total * sizeof(PyObject *));
    r = PyObject_Vectorcall(Ufunc, all, nargs + 1, names);
    if (all != few)
        PyMem_Free(all);
    return r;
}

static PyMethodDef ufunc_def = {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc,
                                METH_FASTCALL | METH_KEYWORDS, "NumPy's protocol for ufuncs."};

/* ---- the buffer protocol ----------------------------------------------------------------------- */
#if PY_VERSION_HEX < 0x030C0000
/* Later versions of Python look for __buffer__ themselves.  Of the two ways to do it before, this one, unlike
 * that of `buffers.py`, can also say why there is no buffer. */
static int
get_buffer(PyObject *x, Py_buffer *view, int flags)
{
    PyObject *memory = PyObject_CallMethod(x, "__buffer__", "i", flags);
    int done = memory == NULL ? -1 : PyObject_GetBuffer(memory, view, flags);
    if (memory == NULL)
        view->obj = NULL;
    Py_XDECREF(memory);
    return done;
}
#endif

/* ---- functions --------------------------------------------------------------------------------- */
/* What `shortened` makes of a function, which is `self`. */
static PyObject *
itself_or_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 1 && plain(args[0]) != NULL)
        return Py_NewRef(args[0]);
    return PyObject_Vectorcall(self, args, nargs, NULL);
}

static PyMethodDef evaluate_def = {"evaluate", (PyCFunction)(void (*)(void))itself_or_call, METH_FASTCALL,
                                   NULL};

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

/* Where an object keeps what the class names in __slots__. */
static int
find_slot(PyObject *cls, const char *name, Py_ssize_t *place)
{
    PyObject *member = PyObject_GetAttrString(cls, name);
    if (member == NULL)
        return -1;
    if (!Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        PyErr_Format(PyExc_TypeError, "%s is not a slot", name);
        Py_DECREF(member);
        return -1;
    }
    *place = ((PyMemberDescrObject *)member)->d_member->offset;
    Py_DECREF(member);
    return 0;
}

/* Give the class a method in C, and find the one in Python. */
static int
exchange_method(PyMethodDef *definition, PyObject **old)
{
    int done;
    PyObject *method = PyDescr_NewMethod(Ours, definition);
    *old = PyObject_GetAttrString((PyObject *)Ours, definition->ml_name);
    done = method == NULL || *old == NULL ||
           PyObject_SetAttrString((PyObject *)Ours, definition->ml_name, method) < 0;
    Py_XDECREF(method);
    return done ? -1 : 0;
}

#include "_calls.h"

static PyObject *
install(PyObject *module, PyObject *args)
{
    PyObject *cls, *array, *wrap, *scalars, *record, *assign, *store, *recording, *current;
    Py_ssize_t limit;
    int known;
    PyNumberMethods *numbers;
    PyMappingMethods *mapping;
    if (!PyArg_ParseTuple(args, "O!O!OnO!OOO!O!O", &PyType_Type, &cls, &PyType_Type, &array, &wrap, &limit,
                          &PyTuple_Type, &scalars, &record, &assign, &PyType_Type, &store, &PyType_Type,
                          &recording, &current))
        return NULL;
    known = shapes_known(array);
    if (known < 0)
        return NULL;
    if (Ours != NULL || !known)
        Py_RETURN_FALSE;
    if (!PyType_HasFeature((PyTypeObject *)cls, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "a class made in Python is wanted");
        return NULL;
    }
    if (find_slot(cls, "_small", &Small) || find_slot(cls, "_store", &Store) ||
        find_slot(cls, "_shape", &Shape) || find_slot(cls, "_index", &Index) ||
        find_slot(cls, "_readonly", &Readonly) || find_slot(cls, "_ndarray", &View) ||
        find_slot(cls, "_little", &Little) || find_slot(cls, "_origin", &Origin) ||
        find_slot(store, "_head", &Head) || find_slot(store, "used", &Used) ||
        find_slot(store, "dirty", &Dirty) || find_slot(store, "char", &Char) ||
        find_slot(store, "mem", &Mem) ||
        find_slot(recording, "done", &Done))
        return NULL;
    Ours = (PyTypeObject *)cls;
    if (exchange_method(&ufunc_def, &Ufunc) || exchange_method(&getitem_def, &Getitem) BINARIES(FIND)
            FIND(nb_power, , "pow", "")) {
        Ours = NULL;
        return NULL;
    }
    Py_INCREF(cls);
    Limit = limit;
    Plain = (PyTypeObject *)Py_NewRef(array);
    Wrap = Py_NewRef(wrap);
    Scalars = Py_NewRef(scalars);
    Record = Py_NewRef(record);
    Assign = Py_NewRef(assign);
    Current = Py_NewRef(current);
    numbers = Ours->tp_as_number;
    BINARIES(REPLACE)
    REPLACE(nb_power, , "pow", "")
    INPLACES(EXCHANGE)
    UNARIES(EXCHANGE)
    mapping = Ours->tp_as_mapping;
    mapping->mp_subscript = fast_subscript;
    slow_assign = mapping->mp_ass_subscript;
    mapping->mp_ass_subscript = fast_assign;
#if PY_VERSION_HEX < 0x030C0000
    Ours->tp_as_buffer->bf_getbuffer = get_buffer;
#endif
    slow_compare = Ours->tp_richcompare;
    Ours->tp_richcompare = fast_compare;
    PyType_Modified(Ours);
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS,
     "install(cls, ndarray, wrap, limit, scalars, record, assign, store, recording, current): give the\n"
     "class `cls` the short way;\n"
     "False if another class has it already, or arrays are not what they were."},
    {"sliced", (PyCFunction)(void (*)(void))sliced, METH_FASTCALL,
     "sliced(shape, index, key): as in `dcarray.window`."},
    {"serve", serve, METH_VARARGS,
     "serve(functions, methods): the short way for NumPy's functions and for the methods of these names."},
    {"short", short_way, METH_VARARGS,
     "short(numpy, slow): a function that calls NumPy's on small arrays, and the slow one for all else."},
    {"short_call", short_call, METH_VARARGS,
     "short_call(cls, name): likewise for calls of instances, which hold NumPy's function in the slot `name`."},
    {"split", split_log, METH_O, "split(log): as in `dcarray.forms`."},
    {"shortened", shortened, METH_O,
     "shortened(evaluate): the function, at once for a small array, which it gives back."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "dcarray._speedups", .m_size = -1,
                                 .m_methods = methods};

PyMODINIT_FUNC
PyInit__speedups(void)
{
    PyObject *module;
    Call = PyUnicode_InternFromString("__call__");
    Out = PyUnicode_InternFromString("out");
    Below = PyUnicode_InternFromString("eager_below");
    ShapeName = PyUnicode_InternFromString("shape");
    if (Call == NULL || Out == NULL || Below == NULL || ShapeName == NULL)
        return NULL;
    module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "REVISION", 7) < 0)
        Py_CLEAR(module);
    return module;
}
